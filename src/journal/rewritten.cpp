#include "journal/rewritten.h"

#include <zstd.h>

#include "base/check.h"
#include "journal/coder.h"
#include "journal/fields.h"
#include "journal/journal_reader.h"

namespace spillway {

std::string rewritten(const std::string& journal, const std::function<void(Record&)>& change) {
  auto reader = JournalReader::open_bytes(journal, "journal");
  CHECK(reader.has_value());
  std::string records;
  for (auto record = reader->next(); record && *record; record = reader->next()) {
    change(**record);
    std::string one;
    Encoder encode(one), frame(records);
    encode(**record);
    frame(one.size());
    records += one;
  }
  std::string compressed(ZSTD_compressBound(records.size()), '\0');
  compressed.resize(ZSTD_compress(compressed.data(), compressed.size(), records.data(), records.size(), 1));
  return journal.substr(0, journal.find('\n') + 1) + compressed;
}

}  // namespace spillway
