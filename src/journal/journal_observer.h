#pragma once

#include <functional>
#include <memory>
#include <string>

#include "executor/observed_executor.h"
#include "journal/journal_file.h"
#include "plan/policy_traits.h"

namespace spillway {

// Writes all that an executor is told and asks for into a journal, from which a replay makes the decisions again.
class JournalObserver final : public Observer {
 public:
  // What the executor begins with: the table before anything has happened, and which policy's online part decides where
  // no plan does.
  struct Beginnings {
    const PageTable& table;
    const ExecutorOptions& options;
    OnlineMaker online = nullptr;  // null: none
    Bytes online_device;
  };
  // `ago`, asked of each event: so long before it is told it happened; nothing: none did. `file` outlives it.
  JournalObserver(JournalFile& file, const Beginnings& beginnings, std::function<Nanos()> ago = {});

  void told(const Stamped& event) override;
  void asked(std::span<const Command> commands, const std::optional<Failure>& failure) override;

 private:
  template <class Kind, class... T>
  void write(const T&... fields_of_record);

  JournalFile& file_;
  std::function<Nanos()> ago_;
  std::string record_;
  Nanos last_;
};

}  // namespace spillway
