#include <array>

#include "reproduce/g10.h"

namespace spillway {
namespace {

constexpr double kTie = 0.005;  // two designs within half a percent are equal

StatementSpec at_least(const std::string& policy, double bound, std::vector<std::string> only = {}) {
  return {.what = policy,
          .policy = policy,
          .relation = Relation::at_least,
          .bound = bound,
          .tolerance = 0,
          .only = std::move(only)};
}

StatementSpec at_most(const std::string& policy, double bound, std::vector<std::string> only = {}) {
  StatementSpec statement = at_least(policy, bound, std::move(only));
  statement.relation = Relation::at_most;
  return statement;
}

StatementSpec within(const std::string& policy, double least, double most, std::vector<std::string> only = {}) {
  StatementSpec statement = at_least(policy, least, std::move(only));
  statement.relation = Relation::within;
  statement.upper = most;
  return statement;
}

// One is not worse than the other, model by model, everywhere in the figure.
StatementSpec beats(const std::string& policy, const std::string& other) {
  return {.what = policy + " / " + other,
          .policy = policy,
          .over = other,
          .relation = Relation::at_least,
          .bound = 1,
          .tolerance = kTie};
}

// A mean over models: which is better, and by how much.
std::vector<StatementSpec> better_by(const std::string& policy, const std::string& other) {
  StatementSpec direction = beats(policy, other), size = direction;
  direction.models = size.models = Over::mean_of_models;
  size.relation = Relation::near;
  size.bound = std::nullopt;
  size.tolerance = 0.1;
  return {direction, size};
}

// Model by model, which is less, and by how much.
std::vector<StatementSpec> fewer_by(const std::string& policy, const std::string& other) {
  StatementSpec direction = beats(policy, other), size = direction;
  direction.tolerance = 0;
  size.relation = Relation::near;
  size.bound = std::nullopt;
  size.tolerance = 0.1;
  return {direction, size};
}

std::vector<StatementSpec> beats_all(const std::string& policy, const std::vector<std::string>& others) {
  std::vector<StatementSpec> statements;
  for (const std::string& other : others) statements.push_back(beats(policy, other));
  return statements;
}

// Why each design is faster or slower here, by an experiment.
ReasonSpec dead_pages() {
  return {.text =
              "Here what is dead leaves without a copy. In the artifact it moves like any other "
              "page, and so it does in PyTorch's pool of memory",
          .policy = "Base UVM",
          .instead = "uvm:pool=1"};
}
ReasonSpec dead_pages_deepum() {
  return {
      .text =
          "DeepUM+ knows nothing of dead tensors in the artifact, and here they move with PyTorch's pool. The policy "
          "that has this also learns from faults, which makes ResNet152 slower than published",
      .policy = "DeepUM+",
      .instead = "deepum-faults:pool=1,invalidate=0"};
}
ReasonSpec flashneuron_room() {
  return {.text =
              "We keep room for the largest working set, and the SSD writes at 3.0 GB/s as in "
              "Table 2. The artifact does neither",
          .policy = "FlashNeuron",
          .overrides = {"device.memory=42.25GiB", "ssd.write=3.2GB/s"},
          .only = {"BERT-256"}};
}
ReasonSpec gds_writes() {
  return {
      .text =
          "The SSD writes at 3.0 GB/s as in Table 2, and at 3.2 in the artifact. That also gives G10-GDS four times "
          "the device's memory, and the plan 40 GB",
      .policy = "G10-GDS",
      .overrides = {"ssd.write=3.2GB/s"}};
}
ReasonSpec planned_once() {
  return {.text =
              "Where the link out is full, g10 plans again with the waits. Algorithm 1 leaves them to page "
              "faults. In the artifact these cost their bytes alone, the device has 40 GB, and the SSD writes at 3.2 "
              "GB/s",
          .policy = "G10",
          .instead = "g10-once",
          .overrides = {"fault.cost=0us", "device.memory=40GB", "ssd.write=3.2GB/s"},
          .only = {"ViT-1280"}};
}

std::vector<ClaimSpec> about_traces() {
  const auto of_trace = [](const std::string& part, Over models, Relation relation, double bound, double tolerance,
                           std::string unit, std::vector<std::string> only = {}) {
    return StatementSpec{.what = part.substr(0, part.rfind(',')),
                         .policy = "",
                         .part = part,
                         .models = models,
                         .relation = relation,
                         .bound = bound,
                         .tolerance = tolerance,
                         .unit = std::move(unit),
                         .only = std::move(only)};
  };
  return {
      {.id = "few-active-bytes",
       .figure = "2",
       .claim = "Kernels use little of what an iteration needs, and the largest fits the device by far.",
       .published = "below 10 % of the peak, 1 % on average; the largest kernel uses 5.7 GB",
       .statements = {of_trace("active, mean %", Over::each_model, Relation::at_most, 10, 0, "%"),
                      of_trace("active, mean %", Over::mean_of_models, Relation::near, 1, 0.5, "%"),
                      of_trace("kernels below 10 %, %", Over::each_model, Relation::at_least, 90, 0, "%"),
                      of_trace("largest kernel, GB", Over::most_of_models, Relation::near, 5.7, 0.1, "GB")},
       .known = "The paper does not name the batches of figure 2. With those of figure 11 kernels of the three "
                "CNNs use more at a time than it says."},
      {.id = "long-inactivity",
       .figure = "3",
       .claim = "Most tensors are not used for far longer than an SSD's latency.",
       .published = "above 10 s: over 60 % of the periods of CNNs; above 0.1 s: about 50 % of those of transformers",
       .statements = {of_trace("above 10 s, %", Over::each_model, Relation::at_least, 60, 0, "%",
                               {"Inceptionv3-1536", "ResNet152-1280"}),
                      of_trace("above 0.1 s, %", Over::each_model, Relation::near, 50, 0.2, "%",
                               {"BERT-256", "ViT-1280"})}},
      {.id = "diverse-periods",
       .figure = "4",
       .claim = "Tensors of all sizes are inactive for all lengths of time, and most could go to the SSD meanwhile.",
       .published =
           "of Inceptionv3-512: 10 KB–2.7 GB, 10 µs–100 s; over 60–80 % of the periods hide their way there and back",
       .statements = {of_trace("long enough for the SSD, %", Over::each_model, Relation::at_least, 60, 0, "%"),
                      of_trace("smallest, bytes", Over::each_model, Relation::at_most, 10'000, 0, "bytes",
                               {"Inceptionv3-512"}),
                      of_trace("largest, GB", Over::each_model, Relation::near, 2.7, 0.1, "GB", {"Inceptionv3-512"}),
                      of_trace("shortest, µs", Over::each_model, Relation::at_most, 20, 0, "µs", {"Inceptionv3-512"}),
                      of_trace("longest, s", Over::each_model, Relation::at_least, 100, 0, "s", {"Inceptionv3-512"})},
       .known = "The paper does not say of which models 60 to 80 % are. Kernels of dry runs are all stretched by one "
                "factor, and so are the shortest periods. The published iteration takes 53.6 s, so no period lasts "
                "100."},
  };
}

std::vector<ClaimSpec> about_throughput() {
  const std::string g10 = "G10", uvm = "Base UVM", fn = "FlashNeuron", deepum = "DeepUM+", gds = "G10-GDS",
                    host = "G10-Host";
  std::vector<StatementSpec> near_ideal{{.what = g10, .policy = g10, .models = Over::mean_of_models},
                                        {.what = g10, .policy = g10}};
  return {
      {.id = "near-ideal",
       .figure = "11",
       .claim = "G10 comes near to a device that holds everything.",
       .published = "90.3 % of ideal, the mean of five models",
       .statements = near_ideal,
       .reasons = {planned_once()}},
      {.id = "first-of-all",
       .figure = "11",
       .claim = "G10 is the fastest of all designs.",
       .published = "with each of five models",
       .statements = beats_all(g10, {uvm, fn, deepum, gds, host})},
      {.id = "uvm-slow",
       .figure = "11",
       .claim = "Base UVM is far from ideal.",
       .published = "4.55× slower, the mean of five models",
       .statements = better_by("Ideal", uvm),
       .reasons = {dead_pages()}},
      {.id = "over-flashneuron",
       .figure = "11",
       .claim = "G10 is faster than FlashNeuron.",
       .published = "1.56× on average, 1.75× at most (SENet154)",
       .statements = better_by(g10, fn),
       .reasons = {flashneuron_room()}},
      {.id = "over-deepum",
       .figure = "11",
       .claim = "G10 is faster than DeepUM+.",
       .published = "1.31×, the mean of five models",
       .statements = better_by(g10, deepum),
       .reasons = {dead_pages_deepum()}},
      {.id = "host-over-deepum",
       .figure = "11",
       .claim = "Planned moves to host memory and SSD, without unified memory, are faster than DeepUM+.",
       .published = "1.23×, the mean of five models",
       .statements = better_by(host, deepum),
       .reasons = {dead_pages_deepum()}},
      {.id = "flashneuron-over-uvm",
       .figure = "11",
       .claim = "FlashNeuron is faster than Base UVM.",
       .published = "2.46×, the mean of three models",
       .statements = better_by(fn, uvm),
       .reasons = {dead_pages(), flashneuron_room()}},
      {.id = "deepum-over-uvm",
       .figure = "11",
       .claim = "DeepUM+ is faster than Base UVM.",
       .published = "3.12×, the mean of five models",
       .statements = better_by(deepum, uvm),
       .reasons = {dead_pages(), dead_pages_deepum()}},
      {.id = "flashneuron-fails",
       .figure = "11",
       .claim = "FlashNeuron cannot run models whose kernels and weights leave it too little memory.",
       .published = "it fails with ViT and Inceptionv3",
       .statements =
           {{.what = fn, .policy = fn, .relation = Relation::fails, .only = {"ViT-1280", "Inceptionv3-1536"}}},
       .reasons = {{.text =
                        "It is feasible here even with half of the device's memory, though slow. We do not know why "
                        "the artifact's fails",
                    .policy = fn,
                    .overrides = {"device.memory=20GiB"},
                    .only = {"ViT-1280"}}}},
      {.id = "gds-over-others",
       .figure = "11",
       .claim = "Planned moves to the SSD alone are faster than FlashNeuron and DeepUM+, but not with ResNet152.",
       .published = "over DeepUM+: BERT 1.01×, ViT 1.15×, Inceptionv3 1.10×, SENet154 1.15×; ResNet152 0.85×",
       .statements = {beats(gds, fn),
                      {.what = gds + " / " + deepum,
                       .policy = gds,
                       .over = deepum,
                       .relation = Relation::at_least,
                       .bound = 1,
                       .tolerance = kTie,
                       .only = {"BERT-256", "ViT-1280", "Inceptionv3-1536", "SENet154-1024"}},
                      {.what = gds + " / " + deepum,
                       .policy = gds,
                       .over = deepum,
                       .relation = Relation::at_most,
                       .bound = 1,
                       .tolerance = 0,
                       .only = {"ResNet152-1280"}}},
       .reasons = {gds_writes(), dead_pages_deepum()}},
  };
}

std::vector<ClaimSpec> about_time_and_traffic() {
  const std::string g10 = "G10", uvm = "Base UVM", fn = "FlashNeuron", deepum = "DeepUM+";
  ClaimSpec stall{.id = "least-stall",
                  .figure = "12",
                  .claim = "G10 stalls for the least time of all designs.",
                  .published = "share of the iteration, model by model"};
  for (const std::string& other : {uvm, fn, deepum})
    stall.statements.push_back({.what = "stalled, G10 / " + other,
                                .policy = g10,
                                .over = other,
                                .part = "stalled",
                                .relation = Relation::at_most,
                                .bound = 1,
                                .tolerance = 0});
  ClaimSpec traffic{.id = "less-traffic",
                    .figure = "14",
                    .claim =
                        "Base UVM and DeepUM+ move more between device and host than G10. G10 sends most of "
                        "transformers' bytes to host "
                        "memory.",
                    .published = "as bars; of five models"};
  for (const std::string& other : {uvm, deepum})
    traffic.statements.push_back({.what = "host, " + other + " / G10",
                                  .policy = other,
                                  .over = g10,
                                  .part = "host",
                                  .relation = Relation::at_least,
                                  .bound = 1,
                                  .tolerance = 0});
  traffic.statements.push_back({.what = "G10, host / SSD",
                                .policy = g10,
                                .over = g10,
                                .part = "host",
                                .over_part = "SSD",
                                .relation = Relation::at_least,
                                .bound = 1,
                                .tolerance = 0,
                                .only = {"BERT-256", "ViT-1280"}});
  ReasonSpec pages = dead_pages();
  pages.part = "host";
  traffic.reasons = {pages};
  return {
      stall,
      {.id = "few-slow-kernels",
       .figure = "13",
       .claim = "Few kernels are slowed under G10, more under FlashNeuron and DeepUM+, most under Base UVM.",
       .published = "G10 1–6 %, FlashNeuron and DeepUM+ 4–30 %, Base UVM over 50 % of the kernels",
       .statements = {at_most(g10, 6), within(fn, 4, 30), within(deepum, 4, 30), at_least(uvm, 50)},
       .reasons = {dead_pages()},
       .known = "Not found why so few kernels are slowed under Base UVM: moving what is dead slows only some more."},
      traffic};
}

std::vector<ClaimSpec> about_sensitivity() {
  const std::string g10 = "G10", uvm = "Base UVM", fn = "FlashNeuron", deepum = "DeepUM+";
  StatementSpec near_90 = at_least(g10, 90), fn_band = within(fn, 70, 80, {"BERT-512", "ViT-1280"}),
                deepum_band = within(deepum, 70, 80, {"BERT-512", "ViT-1280"});
  near_90.at = "12.8 GB/s";
  for (StatementSpec* one : {&fn_band, &deepum_band}) one->at = "32 GB/s";
  StatementSpec profile = at_least(g10, 99.5);
  profile.at = "20 %";
  return {
      {.id = "fast-ssds",
       .figure = "18",
       .claim = "G10 is the fastest with any SSD, and four drives bring it to 90 % of ideal.",
       .published = "90–100 % with up to 12.8 GB/s",
       .statements =
           [&] {
             auto statements = beats_all(g10, {uvm, fn, deepum});
             statements.push_back(near_90);
             return statements;
           }()},
      {.id = "others-with-fast-ssds",
       .figure = "18",
       .claim = "FlashNeuron and DeepUM+ stay at 70–80 % with transformers, however fast the SSDs.",
       .published = "70–80 % of ideal (BERT-512 and ViT-1280, with 32 GB/s)",
       .statements = {fn_band, deepum_band},
       .reasons = {{.text = "Here what is dead leaves without a copy, and in the artifact it moves",
                    .policy = deepum,
                    .at = "32 GB/s",
                    .instead = "deepum-faults:pool=1,invalidate=0",
                    .only = {"ViT-1280"}}}},
      {.id = "wrong-profile",
       .figure = "19",
       .claim = "Errors of the profile hardly slow G10 down.",
       .published = "below 0.5 % with errors of ±20 %",
       .statements = {profile}},
      {.id = "fewer-writes-flashneuron",
       .figure = "7.7a",
       .claim = "G10 writes less to the SSD than FlashNeuron.",
       .published = "2.20× less",
       .statements = fewer_by(fn, g10),
       .known =
           "G10 sends nearly all of the bytes of BERT and ViT to host memory here, and about a quarter to the SSD in "
           "the artifact. The paper's mean follows from none of its figures."},
      {.id = "fewer-writes-deepum",
       .figure = "7.7a",
       .claim = "G10 writes less to the SSD than DeepUM+.",
       .published = "1.37× less",
       .statements = fewer_by(deepum, g10),
       .known =
           "DeepUM+ fills host memory first. So with BERT and ViT it writes nothing to the SSD, in the artifact, too. "
           "The paper's mean follows from none of its figures."},
      {.id = "ssd-life",
       .figure = "7.7b",
       .claim = "The SSD endures years of training without a pause.",
       .published = "3.7 years, from its rates: half of the traffic at 3 GB/s are writes",
       .statements = {at_least(g10, 3.7)}},
  };
}

// What the artifact's traces need at their peak, of what dry runs need: BERT-256 47.8 and 28.0 GiB, ViT-1280 57.4 and
// 19.7.
ReasonSpec more_memory(const std::string& network, const std::string& policy, const std::string& model,
                       const std::string& at) {
  const bool is_bert = network == "BERT";
  return {.text = network + "'s trace in the artifact needs " + (is_bert ? "1.71" : "2.91") +
                  " times the memory of a dry run. So it is with tensors as much larger",
          .policy = policy,
          .at = at,
          .bytes_percent = is_bert ? 171u : 291u,
          .only = {model}};
}

std::vector<ClaimSpec> about_batches_and_host() {
  const std::string g10 = "G10", uvm = "Base UVM", fn = "FlashNeuron", deepum = "DeepUM+";
  const auto gains_most = [&](const std::string& other) {
    StatementSpec gain = better_by(g10, other).back();
    gain.models = Over::most_of_models;
    return gain;
  };
  std::vector<StatementSpec> any_batch = beats_all(g10, {uvm, fn, deepum});
  for (const std::string& other : {fn, deepum}) any_batch.push_back(gains_most(other));
  std::vector<StatementSpec> host_memory;
  struct OfBatch {
    const char* network;
    const char* part;
  };
  for (const OfBatch& small :
       {OfBatch{"BERT", "batch 256"}, OfBatch{"ViT", "batch 768"}, OfBatch{"Inceptionv3", "batch 512"},
        OfBatch{"ResNet152", "batch 768"}, OfBatch{"SENet154", "batch 256"}}) {
    StatementSpec statement = at_least(g10, 99, {small.network});
    statement.part = small.part;
    statement.at = "32 GB";
    host_memory.push_back(statement);
  }
  for (const OfBatch& large :
       {OfBatch{"BERT", "batch 512"}, OfBatch{"ResNet152", "batch 1280"}, OfBatch{"SENet154", "batch 1024"}}) {
    StatementSpec statement = at_most(g10, 75, {large.network});
    statement.part = large.part;
    statement.at = "32 GB";
    host_memory.push_back(statement);
  }
  for (StatementSpec& statement : host_memory) statement.what = g10 + ", " + statement.part;
  std::vector<StatementSpec> less_host;
  for (const char* gigabytes : {"0 GB", "128 GB"})
    for (const std::string& other : {deepum, fn})
      for (StatementSpec statement : better_by(g10, other)) {
        statement.at = gigabytes;
        const bool is_of_text = other == deepum && statement.at == "0 GB" && statement.relation == Relation::near;
        if (is_of_text) statement.bound = 2.58;  // The artifact's results have no such case.
        less_host.push_back(statement);
      }
  const std::string others = "dry-run traces of other batches: examples/models/traces.py g10 -o DIR";
  return {
      {.id = "any-batch",
       .figure = "15",
       .claim = "With any batch G10 is the nearest to ideal.",
       .published =
           "up to 2.67× over FlashNeuron, up to 1.45× over DeepUM+; the artifact's results give 3.00× and 1.49×",
       .statements = any_batch,
       .reasons = {more_memory("BERT", fn, "BERT", "batch 512"), more_memory("BERT", deepum, "BERT", "batch 512"),
                   more_memory("BERT", g10, "BERT", "batch 512"), more_memory("ViT", fn, "ViT", "batch 1024"),
                   more_memory("ViT", deepum, "ViT", "batch 1024"), more_memory("ViT", g10, "ViT", "batch 1024")},
       .needs = others},
      {.id = "little-host-memory",
       .figure = "16",
       .claim = "For most models with small batches 32 GB of host memory suffice, and large ones need more.",
       .published = "32 GB are as good as 256 for the smallest batch of each model; 48 to 61 % for BERT-512, "
                    "ResNet152-1280 and SENet154-1024",
       .statements = host_memory,
       .known = "BERT's dry runs need less memory than the artifact's traces.",
       .needs = others},
      {.id = "less-host-memory",
       .figure = "17",
       .claim = "Without host memory G10 is far ahead of DeepUM+, and with some it is ahead of both.",
       .published = "without host memory 2.58× over DeepUM+, 1.04× over FlashNeuron; with some 1.26× and 1.33×",
       .statements = less_host,
       .reasons = {more_memory("ViT", g10, "ViT-1024", "0 GB"), more_memory("ViT", deepum, "ViT-1024", "0 GB"),
                   more_memory("ViT", fn, "ViT-1024", "0 GB")},
       .needs = others},
  };
}

}  // namespace

std::vector<ClaimSpec> g10_claims() {
  std::vector<ClaimSpec> claims;
  for (auto part :
       {about_traces(), about_throughput(), about_time_and_traffic(), about_sensitivity(), about_batches_and_host()})
    claims.insert(claims.end(), part.begin(), part.end());
  for (ClaimSpec& claim : claims) claim.id = "g10." + claim.id;
  return claims;
}

}  // namespace spillway
