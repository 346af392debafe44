#include "report/table.h"

#include <gtest/gtest.h>

namespace spillway {
namespace {

TEST(Table, NumbersStandRightAndTextLeft) {
  Table table({{"name", Align::left}, {"count"}});
  table.add_row({"a", "1"});
  table.add_row({"longer", "12345"});
  EXPECT_EQ(table.text(),
            "name    count\n"
            "a           1\n"
            "longer  12345\n");
}

TEST(Table, ColumnsLineUpWhateverTheAlphabet) {
  Table table({{"name", Align::left}, {"n"}});
  table.add_row({"µs", "1"});
  table.add_row({"模型", "22"});
  table.add_row({"cafe\u0301", "3"});
  EXPECT_EQ(table.text(),
            "name   n\n"
            "µs     1\n"
            "模型  22\n"
            "cafe\u0301   3\n");
}

TEST(Table, NoLineEndsWithSpaces) {
  Table table({{"a", Align::left}, {"b", Align::left}});
  table.add_row({"x", ""});
  EXPECT_EQ(table.text(), "a  b\nx\n");
}

TEST(DisplayWidth, CountsColumnsNotBytes) {
  EXPECT_EQ(display_width(""), 0u);
  EXPECT_EQ(display_width("abc"), 3u);
  EXPECT_EQ(display_width("µ"), 1u);
  EXPECT_EQ(display_width("模型"), 4u);
  EXPECT_EQ(display_width("\xff\xc3"), 2u) << "what is not UTF-8 counts by its bytes";
}

TEST(Wrapped, BreaksAtSpacesAndIndents) {
  const std::string word(30, 'x');
  EXPECT_EQ(wrapped("", 2), "");
  EXPECT_EQ(wrapped("  here  a b", 8), "  here  a b");
  EXPECT_EQ(wrapped(word + " " + word + " " + word, 4), word + " " + word + " " + word);
  EXPECT_EQ(wrapped(word + " " + word + " " + word + " " + word + " a", 4),
            word + " " + word + " " + word + "\n    " + word + " a");
  const std::string signs = "××××××××××";  // ten columns, twenty bytes
  std::string line = signs;
  for (int n = 0; n < 8; ++n) line += " " + signs;
  EXPECT_EQ(wrapped(line + " y", 0), line + " y") << "exactly a hundred";
  EXPECT_EQ(wrapped(line + " yy z", 0), line + "\nyy z");
  const std::string endless(200, 'x');
  EXPECT_EQ(wrapped("a " + endless + " b", 1), "a\n " + endless + "\n b");
}

TEST(Printable, WhatSteersATerminalOrIsNotUtf8IsReplaced) {
  EXPECT_EQ(printable("plain µ 模型"), "plain µ 模型");
  EXPECT_EQ(printable("\x1b[31mred\x07\r\n"), "?[31mred???");
  EXPECT_EQ(printable("a\xff\xc3z"), "a??z");
  EXPECT_EQ(printable("a\u202eb"), "a?b");
  EXPECT_EQ(printable(std::string_view("\0x", 2)), "?x");
  EXPECT_EQ(printable("\xed\xa0\x80"), "???") << "a surrogate";
}

TEST(Printable, WhatIsTooLongEndsWithAnEllipsis) {
  EXPECT_EQ(printable("abcdef", 6), "abcdef");
  EXPECT_EQ(printable("abcdefg", 6), "abcde…");
  EXPECT_EQ(printable("模型模型", 5), "模型…");
  EXPECT_EQ(display_width(printable("模型模型", 4)), 3u);
}

}  // namespace
}  // namespace spillway
