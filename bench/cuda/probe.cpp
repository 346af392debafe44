// Asks a GPU what the CUDA machine has to know. See usage below; docs/gpu.md has the last answers.
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/version.h"
#include "parts.h"

namespace spillway::probe {

std::span<const Part> parts() {
  static constexpr std::array kParts{
      Part{"card", "Which GPU is this?", 60, card},
      Part{"mapping", "Is mapping too slow, does it block launches?", 90, mapping},
      Part{"unmap-beside", "Does unmapping wait for kernels, or disturb them?", 25, unmap_beside_a_kernel},
      Part{"handles", "Does a handle keep its bytes while it is mapped nowhere?", 25, handles_keep_their_bytes},
      Part{"two-addresses", "May a handle be mapped twice?", 25, one_handle_at_two_addresses},
      Part{"first-launch", "Does a kernel's first launch wait for others?", 25, first_launch_while_others_run},
      Part{"host-numa", "Do blocks in host memory (of a NUMA node) serve as the net?", 25, host_numa_mapped},
      Part{"host", "Do blocks in host memory (of any) serve as the net?", 25, host_mapped},
      Part{"link", "How fast is the link?", 60, link},
      Part{"pinning", "How long does pinning take?", 60, pinning},
      Part{"disk", "How fast is the disk with pinned memory?", 40, disk},
      // These break a context on purpose.
      Part{"copy-unmapped", "What does a copy to what is not mapped do?", 25, copy_to_what_is_not_mapped},
      Part{"kernel-unmapped", "What does a kernel on what is not mapped do?", 25, kernel_on_what_is_not_mapped},
      Part{"unmap-under", "What does unmapping what a kernel uses do?", 25, unmap_under_a_kernel},
  };
  return kParts;
}

namespace {

constexpr const char* kUsage = R"(probe [--part NAME] [--disk FOLDER] [--json FILE] [--within SECONDS]

Asks the first GPU what the CUDA machine has to know: what mapping costs, what may be relied upon, how fast its link is.
Each part is a process with a time limit of its own, the most decisive first. Takes two to seven minutes.
  --part NAME       only this part; see the table's headings
  --disk FOLDER     the disk to measure (default /var/tmp): 4 GiB for a moment
  --within SECONDS  in all: a part that finds less than its limit has what is left, one that finds none is not reached
  --json FILE       the answers for programs: {{"version", "parts": [{{"part", "question", "end", "answers"}}]}};
                    an answer is {{"what", "unit", "count", "median", "p99"}} or {{"what", "fact"}}
Exit status 0: all parts have answered, 1: some have not, 77: there is no GPU.

parts:)";

struct Options {
  std::string part, disk = "/var/tmp", json;
  int within = 0;       // seconds in all; 0: as long as it takes
  bool inside = false;  // in the process of a part
};

struct Answer {
  nlohmann::json lines = nlohmann::json::array();
  int status = 0;   // 0: it has answered
  std::string end;  // "answered", or why not
};

// Runs the part in a process and takes what it tells, line by line.
Answer ask(const Part& part, const Options& options, double seconds) {
  int out[2];
  if (::pipe2(out, O_CLOEXEC) != 0) return {.status = 1, .end = "no pipe could be made"};
  const pid_t child = ::fork();
  if (child < 0) return {.status = 1, .end = "no process could be made"};
  if (child == 0) {
    ::dup2(out[1], STDOUT_FILENO);
    const std::string name(part.name);
    ::execl("/proc/self/exe", "probe", "--inside", "--part", name.c_str(), "--disk", options.disk.c_str(), nullptr);
    ::_exit(127);
  }
  ::close(out[1]);
  Answer answer;
  std::string text;
  const auto begin = Clock::now();
  bool late = false;
  for (;;) {
    const double left = seconds - seconds_since(begin);
    pollfd waited{.fd = out[0], .events = POLLIN, .revents = 0};
    const int ready = left > 0 ? ::poll(&waited, 1, static_cast<int>(left * 1000) + 1) : 0;
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) {
      late = true;
      ::kill(child, SIGKILL);
      break;
    }
    char bytes[4096];
    const ssize_t got = ::read(out[0], bytes, sizeof bytes);
    if (got <= 0) break;
    text.append(bytes, static_cast<std::size_t>(got));
    if (answer.lines.empty()) fmt::print("\n{}: {}\n", part.name, part.question);
    for (std::size_t line; (line = text.find('\n')) != std::string::npos; text.erase(0, line + 1)) {
      const auto row = nlohmann::json::parse(text.substr(0, line), nullptr, false);
      if (!row.is_object()) continue;
      if (row.contains("fact"))
        fmt::print("  {:<58} {}\n", row.value("what", ""), row.value("fact", ""));
      else
        fmt::print("  {:<58} {:>10.2f} {:>10.2f} {:<5} {:>7}\n", row.value("what", ""), row.value("median", 0.0),
                   row.value("p99", 0.0), row.value("unit", ""), row.value("count", 0));
      std::fflush(stdout);
      answer.lines.push_back(row);
    }
  }
  ::close(out[0]);
  // One that hangs in the driver may not die; it is left behind then.
  int status = 0;
  const auto dying = Clock::now();
  while (::waitpid(child, &status, WNOHANG) == 0) {
    if (!late && seconds_since(dying) > 5) {
      late = true;
      ::kill(child, SIGKILL);
    }
    if (seconds_since(dying) > 10) {
      fmt::print("{}: it does not die\n", part.name);
      return {.lines = std::move(answer.lines), .status = 1, .end = "does not die"};
    }
    ::usleep(10'000);
  }
  answer.status = WIFEXITED(status) && !late ? WEXITSTATUS(status) : 1;
  if (late)
    answer.end = fmt::format("no end within {:.0f} s", seconds);
  else if (WIFSIGNALED(status))
    answer.end = fmt::format("ended by signal {}", WTERMSIG(status));
  else
    answer.end = answer.status == 0 ? "answered" : fmt::format("ended with status {}", answer.status);
  if (answer.status != 0 && answer.status != kSkipped) fmt::print("{}: {}\n", part.name, answer.end);
  std::fflush(stdout);
  return answer;
}

int run_inside(const Options& options) {
  for (const Part& part : parts())
    if (part.name == options.part) {
      const auto begin = Clock::now();
      const std::unique_ptr<Gpu> gpu = Gpu::open();
      tell("start of the process's context", fmt::format("{:.0f} ms", seconds_since(begin) * 1e3));
      part.run({*gpu, options.disk});
      return 0;
    }
  return 2;
}

int ask_all(const Options& options) {
  // A GPU that nobody has open may be started anew for each part, which takes seconds.
  const int held = ::open("/dev/nvidia0", O_RDWR | O_CLOEXEC);
  nlohmann::json report{{"version", kVersion}, {"parts", nlohmann::json::array()}};
  std::string ends;
  bool missing = false;
  const auto begin = Clock::now();
  for (const Part& part : parts()) {
    const bool first = &part == parts().data();  // It tells whether there is a GPU at all.
    if (!options.part.empty() && part.name != options.part && !first) continue;
    const double left = options.within == 0 ? part.seconds : options.within - seconds_since(begin);
    const Answer answer = left > 1 ? ask(part, options, std::min<double>(left, part.seconds))
                                   : Answer{.lines = nlohmann::json::array(), .status = 1, .end = "not reached"};
    if (first && answer.status == kSkipped) return kSkipped;
    missing |= answer.status != 0;
    ends += fmt::format("  {:<16} {}\n", part.name, answer.end);
    report["parts"].push_back(
        {{"part", part.name}, {"question", part.question}, {"end", answer.end}, {"answers", answer.lines}});
    // After each part: what comes may never end.
    if (!options.json.empty() && !(std::ofstream(options.json) << report.dump(2) << '\n')) {
      fmt::print(stderr, "error: cannot write {}\n", options.json);
      return 1;
    }
    if (answer.end == "does not die") break;
  }
  if (held >= 0) ::close(held);
  fmt::print("\nParts:\n{}", ends);
  return missing;
}

int usage() {
  fmt::print("{}\n", fmt::format(fmt::runtime(kUsage)));
  for (const Part& part : parts()) fmt::print("  {:<16} {:>3} s  {}\n", part.name, part.seconds, part.question);
  return 0;
}

}  // namespace
}  // namespace spillway::probe

int main(int count, char** arguments) {
  using namespace spillway::probe;
  Options options;
  const std::vector<std::string> words(arguments + 1, arguments + count);
  for (std::size_t at = 0; at < words.size(); ++at) {
    const std::string& word = words[at];
    std::string within;
    std::string* const value = word == "--part"     ? &options.part
                               : word == "--disk"   ? &options.disk
                               : word == "--json"   ? &options.json
                               : word == "--within" ? &within
                                                    : nullptr;
    if (word == "--help" || word == "-h") return usage();
    if (word == "--inside") {
      options.inside = true;
    } else if (value != nullptr && at + 1 < words.size()) {
      *value = words[++at];
      if (value == &within) options.within = std::atoi(within.c_str());
      if (value == &within && options.within <= 0) {
        fmt::print(stderr, "error: --within {}: it must be a number of seconds\n", within);
        return 2;
      }
    } else {
      fmt::print(stderr, "error: probe does not understand {}; see probe --help\n", word);
      return 2;
    }
  }
  if (!options.part.empty() &&
      std::ranges::none_of(parts(), [&](const Part& part) { return part.name == options.part; })) {
    fmt::print(stderr, "error: there is no part {}; see probe --help\n", options.part);
    return 2;
  }
  return options.inside ? run_inside(options) : ask_all(options);
}
