#include "import/pickle.h"

#include <gtest/gtest.h>

#include <initializer_list>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace spillway {
namespace {

using namespace std::string_literals;

Result<Pickle> read(const std::string& after_protocol) {
  // The texts of a pickle are parts of its bytes.
  static std::vector<std::unique_ptr<std::string>> kept;
  kept.push_back(std::make_unique<std::string>("\x80\x04"s + after_protocol));
  return parse_pickle(*kept.back(), "cannot import it");
}

std::string refusal_of(const std::string& after_protocol) {
  const auto pickle = read(after_protocol);
  return pickle ? std::string() : pickle.error().message;
}

std::int64_t number_of(const std::string& after_protocol) {
  const auto pickle = read(after_protocol);
  return pickle ? pickle->number(pickle->root()).value_or(-99) : -98;
}

TEST(Pickle, NumbersAreLittleEndianAndInTwosComplement) {
  EXPECT_EQ(number_of("K\xff."), 255);
  EXPECT_EQ(number_of("M\x01\x02."), 513);
  EXPECT_EQ(number_of("J\xfe\xff\xff\xff."), -2);
  EXPECT_EQ(number_of("\x8a\x00."s), 0);
  EXPECT_EQ(number_of("\x8a\x02\xff\x7f."), 32767);
  EXPECT_EQ(number_of("\x8a\x02\x00\x80."s), -32768);
  EXPECT_EQ(number_of("\x8a\x08\xff\xff\xff\xff\xff\xff\xff\x7f."), INT64_MAX);
  EXPECT_EQ(number_of("\x8a\x09\xff\xff\xff\xff\xff\xff\xff\xff\x00."s), -99) << "beyond 64 bits it is none";
  EXPECT_EQ(number_of("\x8b\x01\x00\x00\x00\x07."s), 7);
  EXPECT_EQ(number_of("G\x3f\xf0\x00\x00\x00\x00\x00\x00."s), -99) << "nobody asks for floats";
}

TEST(Pickle, ListsTuplesAndDictionariesHoldWhatIsPutIntoThem) {
  // {"a": [1, 2], "b": (3, "x"), "a": ()}
  const auto pickle = read(
      "}\x94(\x8c\x01"
      "a\x94](K\x01K\x02"
      "eX\x01\x00\x00\x00"
      "bK\x03\x8c\x01x\x86h\x01)u."s);
  ASSERT_TRUE(pickle) << pickle.error().message;
  EXPECT_TRUE(pickle->is_dictionary(pickle->root()));
  const auto last = pickle->find(pickle->root(), "a"), tuple = pickle->find(pickle->root(), "b");
  ASSERT_TRUE(last && tuple);
  EXPECT_TRUE(pickle->items(*last)->empty()) << "of two entries the last";
  ASSERT_EQ(pickle->items(*tuple)->size(), 2u);
  EXPECT_EQ(pickle->number((*pickle->items(*tuple))[0]), 3);
  EXPECT_EQ(pickle->text((*pickle->items(*tuple))[1]), "x");
  EXPECT_FALSE(pickle->find(pickle->root(), "c"));
  EXPECT_FALSE(pickle->find(*last, "a"));
  EXPECT_FALSE(pickle->items(pickle->root()));
}

TEST(Pickle, WhatIsRememberedIsOneValue) {
  // l = []; [l, l], and l.append(5) after that
  const auto pickle = read(
      "](]q\x07h\x07"
      "eh\x07K\x05"
      "a0.");
  ASSERT_TRUE(pickle) << pickle.error().message;
  const auto items = pickle->items(pickle->root());
  ASSERT_EQ(items->size(), 2u);
  EXPECT_EQ((*items)[0], (*items)[1]);
  EXPECT_EQ(pickle->items((*items)[0])->size(), 1u);
  EXPECT_TRUE(
      read("]\x94h\x00"
           "a."s))
      << "a list may hold itself";
}

TEST(Pickle, WhatRunsCodeIsRefusedByItsName) {
  const std::string call = refusal_of("cos\nsystem\n\x8c\x02id\x85R.");
  EXPECT_TRUE(call.contains("byte 2: the opcode GLOBAL os.system is one that runs code")) << call;
  EXPECT_TRUE(refusal_of("c\x1b[2J\n" + std::string(500, 'x')).size() < 300) << "and nothing else gets to the terminal";
  EXPECT_FALSE(refusal_of("c\x1b[2J\nx\n.").contains('\x1b'));
  EXPECT_TRUE(refusal_of("\x8c\x02os\x8c\x06system\x93.").contains("byte 14: the opcode STACK_GLOBAL"));
  for (const auto& [opcode, name] : std::initializer_list<std::pair<std::string, std::string>>{{"R", "REDUCE"},
                                                                                               {"b", "BUILD"},
                                                                                               {"i", "INST"},
                                                                                               {"o", "OBJ"},
                                                                                               {"\x81", "NEWOBJ"},
                                                                                               {"\x92", "NEWOBJ_EX"},
                                                                                               {"P", "PERSID"},
                                                                                               {"Q", "BINPERSID"},
                                                                                               {"\x82", "EXT1"},
                                                                                               {"\x83", "EXT2"},
                                                                                               {"\x84", "EXT4"}})
    EXPECT_TRUE(refusal_of("))" + opcode).contains("the opcode " + name + " is one that runs code")) << name;
  EXPECT_TRUE(refusal_of("B\x00\x00\x00\x00."s).contains("the opcode 0x42 is not one of plain data"));
}

TEST(Pickle, DamageIsAnErrorThatNamesTheByte) {
  EXPECT_TRUE(refusal_of("").contains("byte 2: the file ends within a value; is it cut off?"));
  EXPECT_TRUE(refusal_of("X\xff\xff\xff\xff"
                         "abc.")
                  .contains("cut off"));
  EXPECT_TRUE(refusal_of("\x8d\xff\xff\xff\xff\xff\xff\xff\xff"
                         "abc.")
                  .contains("cut off"));
  EXPECT_TRUE(refusal_of(".").contains("a value where there is none"));
  EXPECT_TRUE(refusal_of("K\x01(0.").contains("byte 5: it takes a value where there is none")) << "not below a mark";
  EXPECT_TRUE(refusal_of("e.").contains("a mark where there is none"));
  EXPECT_TRUE(refusal_of("h\x03.").contains("it recalls value 3"));
  EXPECT_TRUE(refusal_of("K\x01K\x02"
                         "a.")
                  .contains("neither a list nor a dictionary"));
  EXPECT_TRUE(refusal_of("}(K\x01u.").contains("a key without a value"));
  EXPECT_TRUE(refusal_of("Nr\xff\xff\xff\xff.").contains("it remembers value 4294967295"));
  const auto newer = parse_pickle("\x80\x06N.", "cannot import it");
  ASSERT_FALSE(newer);
  EXPECT_TRUE(newer.error().message.contains("protocol 6")) << newer.error().message;
  EXPECT_FALSE(parse_pickle("PK\x03\x04", "cannot import it"));
}

}  // namespace
}  // namespace spillway
