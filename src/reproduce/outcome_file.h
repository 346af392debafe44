#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "reproduce/experiment.h"

namespace spillway {

// An outcome as the cache keeps it: JSON, with the key that it belongs to.
std::string to_cache_text(const Outcome& outcome, std::string_view key);
// Nothing if the text is damaged, or another key's.
std::optional<Outcome> from_cache_text(std::string_view text, std::string_view key);

// The file's name for a key: a hash of it.
std::string cache_file_name(std::string_view key);

}  // namespace spillway
