#include "program.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "base/check.h"
#include "machines/cpu/userfault.h"

namespace spillway {

namespace fs = std::filesystem;

namespace {

// The least budget grows with the CPUs that a run may use.
void keep_two_cpus() {
  cpu_set_t all, two;
  CPU_ZERO(&two);
  CHECK(::sched_getaffinity(0, sizeof all, &all) == 0);
  for (std::size_t cpu = 0; cpu < CPU_SETSIZE && CPU_COUNT(&two) < 2; ++cpu)
    if (CPU_ISSET(cpu, &all)) CPU_SET(cpu, &two);
  CHECK(::sched_setaffinity(0, sizeof two, &two) == 0);
}

}  // namespace

std::string text_of(const fs::path& file) {
  std::ostringstream text;
  text << std::ifstream(file).rdbuf();
  return text.str();
}

void Program::SetUp() {
  if (auto faults = Userfault::open(); !faults) GTEST_SKIP() << faults.error().message;
  std::string name = "/var/tmp/spillway run-XXXXXX";
  ASSERT_NE(::mkdtemp(name.data()), nullptr);
  folder = fs::path(name) / "work";
  fs::create_directory(folder);
  const fs::path installed = fs::path(name) / "program";
  fs::create_directory(installed);
  program = installed / "spillway";
  // A link would lead the program back to where the real libraries are.
  fs::copy_file(SPILLWAY_PROGRAM, program);
  fs::copy_file(STAND_IN, installed / "libspillway_preload.so");
  fs::copy_file(STAND_IN, installed / "libspillway_torch.so");
}

void Program::TearDown() {
  if (!folder.empty()) fs::remove_all(folder.parent_path());
}

Ended Program::spillway(const std::vector<std::string>& arguments) const {
  const fs::path out = folder.parent_path() / "stdout", err = folder.parent_path() / "stderr";
  const pid_t child = ::fork();
  if (child == 0) {
    std::vector<char*> argv{const_cast<char*>(program.c_str())};
    for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
    argv.push_back(nullptr);
    const int files[] = {::open("/dev/null", O_RDONLY), ::open(out.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600),
                         ::open(err.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600)};
    for (int i = 0; i < 3; ++i) ::dup2(files[i], i);
    keep_two_cpus();
    if (before_exec) before_exec();
    if (::chdir(folder.c_str()) == 0) ::execv(program.c_str(), argv.data());
    ::_exit(99);
  }
  int status = 0;
  CHECK(::waitpid(child, &status, 0) == child);
  return {.status = WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status),
          .out = text_of(out),
          .err = text_of(err)};
}

Ended Program::run(std::vector<std::string> options, const std::vector<std::string>& command) const {
  options.insert(options.begin(), {"run", "--device-memory", "1GiB"});
  options.emplace_back("--");
  options.insert(options.end(), command.begin(), command.end());
  return spillway(options);
}

}  // namespace spillway
