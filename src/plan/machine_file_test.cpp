#include "plan/machine_file.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <string>
#include <utility>

#include "plan/machine_fields.h"

namespace spillway {
namespace {

std::string a100_with(std::string_view from, std::string_view to) {
  std::string text = to_toml(*load_machine("a100"));
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from << " is not in\n" << text;
  return text.replace(at, from.size(), to);
}

// The error of a file in which `from` stands as `to`; it must name the file and hold `says`.
void expect_machine_refused(std::string_view from, std::string_view to, std::string_view says) {
  const auto machine = parse_machine(a100_with(from, to), "mine.toml");
  ASSERT_FALSE(machine) << to;
  EXPECT_TRUE(machine.error().message.contains("mine.toml")) << machine.error().message;
  EXPECT_TRUE(machine.error().message.contains(says)) << machine.error().message;
}

TEST(MachineFile, ThePresetA100IsTheSystemOfG10) {
  const auto machine = load_machine("a100");
  ASSERT_TRUE(machine) << machine.error().message;
  EXPECT_EQ(machine->device.memory, 40_GiB);
  EXPECT_EQ(machine->host.memory, 128_GiB);
  EXPECT_EQ(machine->link.to_device, BytesPerSecond{15'754'000'000});
  EXPECT_EQ(machine->link.from_device, machine->link.to_device);
  EXPECT_EQ(machine->ssd_read(), BytesPerSecond{3'200'000'000});
  EXPECT_EQ(machine->ssd_write(), BytesPerSecond{3'000'000'000});
  EXPECT_EQ(machine->ssd.read_latency, Nanos{20'000});
  EXPECT_EQ(machine->ssd.write_latency, Nanos{16'000});
  EXPECT_EQ(machine->ssd_capacity(), Bytes{3'200'000'000'000});
  EXPECT_EQ(machine->fault.cost, Nanos{20'000});
  EXPECT_EQ(machine->fault.bytes, 64_KiB);
}

TEST(MachineFile, EveryPresetLoadsUnderItsNameAndSurvivesBeingWritten) {
  EXPECT_GE(machine_presets().size(), 5u);
  for (const std::string_view name : machine_presets()) {
    const auto machine = load_machine(std::string(name));
    ASSERT_TRUE(machine) << machine.error().message;
    EXPECT_EQ(machine->name, name);
    const auto again = parse_machine(to_toml(*machine), "again");
    ASSERT_TRUE(again) << again.error().message;
    EXPECT_EQ(again->hash, machine->hash);
    EXPECT_EQ(again->description, machine->description);
  }
}

TEST(MachineFile, WhatIsWrongIsNamedWithItsKeyAndTheRemedy) {
  expect_machine_refused("to_device = 15754000000", "to_device = 0", "link.to_device: '0' is too small");
  expect_machine_refused("to_device = 15754000000", "to_device = -1", "link.to_device");
  expect_machine_refused("to_device = 15754000000", "to_device = nan",
                         "link.to_device: it must be a text with its unit");
  expect_machine_refused("to_device = 15754000000", "to_device = 'inf'", "link.to_device");
  expect_machine_refused("to_device = 15754000000", "to_device = true", "link.to_device: it must be a text");
  expect_machine_refused("to_device = 15754000000", "to_device = '12 apples'", "unknown unit 'apples'");
  expect_machine_refused("to_device = 15754000000", "to_device = 99999999999999999999", "line");
  expect_machine_refused("to_device = 15754000000", "colour = 3",
                         "unknown key link.colour; the keys are device.memory");
  expect_machine_refused("to_device = 15754000000", "", "link.to_device is missing");
  expect_machine_refused("[link]", "[lnk]", "unknown key lnk.");
  expect_machine_refused("memory = \"40GiB\"", "memory = '2PiB'", "device.memory: '2PiB' is too large");
  expect_machine_refused("cost = \"20us\"", "cost = 20", "fault.cost: '20' is not a duration");
  expect_machine_refused("count = 1\ncapacity", "count = 1.5\ncapacity", "ssd.count");
  expect_machine_refused("count = 1\ncapacity", "count = 'many'\ncapacity", "ssd.count: 'many' is not a whole number");
  expect_machine_refused("[link]", "[link", "line");
  expect_machine_refused("[link]", " [ #link", "a table's name is missing; write it like [device]");
}

TEST(MachineFile, TextThatIsNoMachineIsRefused) {
  for (const std::string& text : {std::string(), std::string("[#"), std::string("\xef\xbb\xbf[[\xc3"),
                                  std::string("a = 1"), std::string(100'000, '['), std::string(100'000, '{'),
                                  std::string("\xff\xfe"), std::string("a.") + std::string(100'000, 'b') + " = 1"})
    EXPECT_FALSE(parse_machine(text, "other"));
}

TEST(MachineFile, AKeyOfManyDotsIsRefusedBeforeTheParserRecurses) {
  std::string key = "a";
  for (int i = 0; i < 500'000; ++i) key += ".a";
  for (const std::string& deep : {key + " = 1", "b = { " + key + " = 1 }", "[" + key + "]"}) {
    const auto machine = parse_machine("name = \"x\"\n" + deep + "\n", "deep.toml");
    ASSERT_FALSE(machine);
    EXPECT_TRUE(machine.error().message.contains("line 2")) << machine.error().message;
  }
}

TEST(MachineFile, ArraysAndInlineTablesAreRefusedBeforeTheParserMeetsThem) {
  for (const char* value : {"[1]", " \t[[[}[[[", "{x = 1}", "{"}) {
    const auto machine = parse_machine(std::string("name = \"a\"\nx =") + value + "\n", "file");
    ASSERT_FALSE(machine) << value;
    EXPECT_TRUE(machine.error().message.contains("line 2: it has an array")) << machine.error().message;
  }
  const auto header = parse_machine("name = \"=[ \\\"=[\" # =[\n[device]\nmemory = \"1GiB\"\n", "file");
  ASSERT_FALSE(header);
  EXPECT_FALSE(header.error().message.contains("array")) << header.error().message;
}

TEST(MachineFile, AnUnknownNameListsThePresets) {
  const auto machine = load_machine("z9");
  ASSERT_FALSE(machine);
  EXPECT_EQ(machine.error().code, Errc::usage);
  EXPECT_TRUE(machine.error().message.contains("v100-16")) << machine.error().message;
  EXPECT_FALSE(load_machine("/nowhere/machine.toml"));
}

TEST(MachineFile, AnOverrideChangesOneValueAndTheHashAndIsRemembered) {
  const auto before = load_machine("a100");
  ASSERT_TRUE(before);
  MachineModel machine = *before;
  ASSERT_TRUE(apply_override(machine, "device.memory=20GiB"));
  EXPECT_EQ(machine.device.memory, 20_GiB);
  EXPECT_EQ(machine.overrides, std::vector<std::string>{"device.memory=20GiB"});
  EXPECT_NE(machine.hash, before->hash);
  ASSERT_TRUE(apply_override(machine, "device.memory=40GiB"));
  EXPECT_EQ(machine.hash, before->hash) << "the same values are the same machine";
}

// These hashes are in plans that users keep.
TEST(MachineFile, NewKeysChangeNoHashUntilTheyAreUsed) {
  MachineModel machine = *load_machine("a100");
  EXPECT_EQ(machine.hash, "1b42503b74a7a98d03909c30cb34fc0d");
  for (const std::string_view same : {"fault.latency=0", "fault.batch=1", "fault.widen=0"})
    ASSERT_TRUE(apply_override(machine, same));
  EXPECT_EQ(machine.hash, "1b42503b74a7a98d03909c30cb34fc0d");
  EXPECT_FALSE(machine.flash);
  std::string last = machine.hash;
  for (const std::string_view other : {"fault.latency=1us", "fault.batch=2", "fault.widen=1", "flash.dwpd=30"}) {
    ASSERT_TRUE(apply_override(machine, other));
    EXPECT_NE(std::exchange(last, machine.hash), machine.hash) << other;
  }
  EXPECT_TRUE(machine.flash);
}

// Planning and simulating do not look at them.
TEST(MachineFile, WhatOnlyDryRunsUseIsNoPartOfTheHash) {
  MachineModel machine = *load_machine("a100");
  EXPECT_TRUE(machine.device.rates.are_known());
  const std::string hash = machine.hash;
  for (const char* change :
       {"device.gflops=1", "device.tensor_gflops=2", "device.bandwidth=3GB/s", "device.launch=4us"}) {
    ASSERT_TRUE(apply_override(machine, change)) << change;
    EXPECT_EQ(machine.hash, hash) << change;
  }
  EXPECT_EQ(machine.device.rates.launch, Nanos{4'000});
  ASSERT_TRUE(apply_override(machine, "device.bandwidth=0"));
  EXPECT_FALSE(machine.device.rates.are_known());
}

TEST(MachineFile, ATableOfFlashIsFlashThoughItSaysNothing) {
  const std::string a100 = to_toml(*load_machine("a100"));
  EXPECT_FALSE(a100.contains("flash"));
  const auto machine = parse_machine(a100 + "\n[flash]\n", "mine.toml");
  ASSERT_TRUE(machine) << machine.error().message;
  ASSERT_TRUE(machine->flash);
  EXPECT_EQ(machine->flash->channels, 16u);
  EXPECT_EQ(machine->hash, load_machine("a100-flash")->hash);
}

TEST(MachineFile, FlashThatCannotBeIsRefused) {
  const std::string a100 = to_toml(*load_machine("a100"));
  for (const auto& [flash, says] : std::initializer_list<std::pair<std::string_view, std::string_view>>{
           {"channels = 0", "flash.channels: '0' is too small"},
           {"pages = 0", "flash.pages: '0' is too small"},
           {"page = '4MiB'", "flash.page: '4MiB' is too large"},
           {"page = '6KiB'", "flash.page: 6144 B is not a power of two"},
           {"reserve = 0", "flash.reserve: '0' is too small"},
           {"over_provisioning = 28", "'28' is not a whole number of percent; write it like 28%"},
           {"over_provisioning = '28%%'", "is not a whole number of percent"},
           {"over_provisioning = '0%'", "flash.over_provisioning: with 0 % there are"},
           {"blocks = 3", "unknown key flash.blocks"}}) {
    const auto machine = parse_machine(a100 + "\n[flash]\n" + std::string(flash) + "\n", "mine.toml");
    ASSERT_FALSE(machine) << flash;
    EXPECT_TRUE(machine.error().message.contains(says)) << machine.error().message;
  }
}

TEST(MachineFile, DevicesThatShareASlowSsdAreRefused) {
  MachineModel machine = *load_machine("a100");
  for (const std::string_view change : {"ssd.read=63kB/s", "device.count=64"})
    EXPECT_TRUE(apply_override(machine, change)) << change;
  const auto fits = check_machine(machine);
  ASSERT_FALSE(fits);
  EXPECT_TRUE(fits.error().message.contains("device.count: each of 64 devices has 984 B/s")) << fits.error().message;
}

TEST(MachineFile, AWrongOverrideChangesNothing) {
  MachineModel machine = *load_machine("a100");
  const std::string hash = machine.hash;
  for (const std::string_view change :
       {"device.colour=3", "device.memory", "device.memory=", "device.memory=-1GiB", "=3", "ssd.count=0",
        "link.to_device=0", "device.memory=1e999GiB", "ssd.read=nan"}) {
    const auto changed = apply_override(machine, change);
    ASSERT_FALSE(changed) << change;
    EXPECT_EQ(changed.error().code, Errc::usage);
  }
  EXPECT_EQ(machine.hash, hash);
  EXPECT_TRUE(machine.overrides.empty());
}

RC_GTEST_PROP(MachineFileProperty, WhatIsWrittenIsReadAgainAsTheSameMachine, ()) {
  MachineModel machine;
  machine.name = *rc::gen::string<std::string>().as("name");
  std::erase_if(machine.name,
                [](char c) { return static_cast<unsigned char>(c) < ' ' || static_cast<unsigned char>(c) > '~'; });
  machine.name += 'x';
  for (const MachineField& field : machine_fields())
    field.of(machine) =
        *rc::gen::oneOf(rc::gen::inRange(field.least, field.most), rc::gen::element(field.least, field.most));
  if (!check_machine(machine)) {  // Most of it goes together with no capacity.
    machine.device.count = 1;
    machine.flash = FlashModel{};
    machine.flash->dwpd = *rc::gen::inRange<std::uint64_t>(1, 1000);
    machine.ssd.capacity = *rc::gen::element(Bytes{}, Bytes{3'200'000'000'000});
    if (*rc::gen::arbitrary<bool>()) machine.flash.reset();
  }
  const auto again = parse_machine(to_toml(machine), "again");
  RC_ASSERT(again.has_value());
  RC_ASSERT(again->name == machine.name);
  RC_ASSERT(again->flash.has_value() == machine.flash.has_value());
  for (const MachineField& field : machine_fields()) {
    MachineModel copy = *again;
    RC_ASSERT(field.of(copy) == field.of(machine));
  }
}

// A file without a name is called by its own.
TEST(MachineFile, ANameOfOtherLettersIsWrittenInOnesThatAreRead) {
  MachineModel machine = *load_machine("a100");
  machine.name = "./\xc3\xa4.toml";
  const auto again = parse_machine(to_toml(machine), "again");
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(again->name, "./??.toml");
}

}  // namespace
}  // namespace spillway
