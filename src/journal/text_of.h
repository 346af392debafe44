#pragma once

#include <string>

#include "executor/machine.h"
#include "executor/migration.h"
#include "journal/record.h"

namespace spillway {

// One line for people: "kernel 12 of stream 0 is ready: reads blocks 3-5, writes block 9".
std::string text_of(const Event& event);
std::string text_of(const Command& command);
std::string text_of(const Failure& failure);
std::string text_of(BlockRange blocks);

}  // namespace spillway
