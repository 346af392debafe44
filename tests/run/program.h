#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace spillway {

struct Ended {
  int status = 0;  // 1000 + n on signal n
  std::string out, err;
};

// A folder of its own for each test, which holds the program and stand-ins for the hook's libraries, and is removed at
// the end. Its name has a space in it, as users' folders have.
struct Program : testing::Test {
  void SetUp() override;
  void TearDown() override;

  // Runs the program to its end in `folder`; its standard input is empty.
  Ended spillway(const std::vector<std::string>& arguments) const;
  // `spillway run` with a fair budget and these options and command.
  Ended run(std::vector<std::string> options, const std::vector<std::string>& command) const;

  std::function<void()> before_exec;  // takes rights from the program, in its process
  std::filesystem::path folder;
  std::filesystem::path program;
};

std::string text_of(const std::filesystem::path& file);  // empty if there is none

}  // namespace spillway
