#include "session/process_tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <charconv>
#include <chrono>
#include <memory>
#include <optional>
#include <sstream>
#include <unordered_map>

#include "base/unique_fd.h"

namespace spillway {
namespace {

struct Stat {
  Process process;
  pid_t parent = 0;
  bool alive = false;
};

std::optional<Stat> read_stat(pid_t pid) {
  const int raw = ::open(("/proc/" + std::to_string(pid) + "/stat").c_str(), O_RDONLY | O_CLOEXEC);
  if (raw < 0) return std::nullopt;  // it has just ended
  const UniqueFd fd(raw);
  char buffer[2048];
  const ssize_t size = ::read(fd.get(), buffer, sizeof buffer);
  if (size <= 0) return std::nullopt;
  const std::string text(buffer, static_cast<std::size_t>(size));
  // "pid (name) state ppid ..."; the name may hold spaces and parentheses.
  const std::size_t open = text.find('('), close = text.rfind(')');
  if (open == std::string::npos || close == std::string::npos || close < open) return std::nullopt;
  Stat stat;
  stat.process.pid = pid;
  stat.process.name = text.substr(open + 1, close - open - 1);
  std::istringstream rest(text.substr(close + 1));
  char state = '?';
  rest >> state >> stat.parent;
  std::string skipped;
  int threads = 0;
  for (int field = 5; field < 20; ++field) rest >> skipped;
  rest >> threads >> skipped >> stat.process.start_ticks;  // fields 20 to 22
  if (!rest) return std::nullopt;
  // A process whose first thread has ended looks like a zombie while its other threads live on.
  stat.alive = state != 'X' && (state != 'Z' || threads > 1);
  return stat;
}

std::vector<Stat> all_processes() {
  std::vector<Stat> found;
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(::opendir("/proc"), ::closedir);
  if (folder == nullptr) return found;
  while (const dirent* entry = ::readdir(folder.get())) {
    const std::string_view name = entry->d_name;
    pid_t pid = 0;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), pid);
    if (error != std::errc{} || end != name.data() + name.size()) continue;
    if (auto stat = read_stat(pid)) found.push_back(std::move(*stat));
  }
  return found;
}

void reap_all() {
  while (::waitpid(-1, nullptr, WNOHANG) > 0) {
  }
}

}  // namespace

std::string names_of(const std::vector<Process>& processes) {
  std::string text;
  for (const Process& process : processes) text += (text.empty() ? "" : ", ") + process.name;
  return text;
}

std::vector<Process> descendants(pid_t root) {
  const std::vector<Stat> all = all_processes();
  std::unordered_multimap<pid_t, const Stat*> children;
  for (const Stat& stat : all) children.emplace(stat.parent, &stat);
  std::vector<Process> found;
  std::vector<pid_t> open{root};
  while (!open.empty()) {
    const pid_t parent = open.back();
    open.pop_back();
    const auto [begin, end] = children.equal_range(parent);
    for (auto child = begin; child != end; ++child) {
      const Stat& stat = *child->second;
      open.push_back(stat.process.pid);
      if (stat.alive) found.push_back(stat.process);
    }
  }
  return found;
}

void send_signal(const Process& process, int signal) {
  const int raw = static_cast<int>(::syscall(SYS_pidfd_open, process.pid, 0));
  if (raw < 0) return;
  const UniqueFd fd(raw);
  // The descriptor is bound to whoever has the pid now; that is the one we mean if it started when ours did.
  const auto stat = read_stat(process.pid);
  if (stat && stat->process.start_ticks == process.start_ticks)
    ::syscall(SYS_pidfd_send_signal, fd.get(), signal, nullptr, 0);
}

std::vector<Process> kill_descendants(Nanos limit) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::nanoseconds(limit.value);
  for (;;) {
    const std::vector<Process> alive = descendants(::getpid());
    for (const Process& process : alive) send_signal(process, SIGKILL);
    reap_all();
    if (alive.empty()) return alive;
    if (std::chrono::steady_clock::now() > deadline) return alive;
    ::poll(nullptr, 0, 5);  // they need a moment to end
  }
}

}  // namespace spillway
