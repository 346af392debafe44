#include "trace/header_scan.h"

#include <nlohmann/json.hpp>

namespace spillway {
namespace {

using Json = nlohmann::json;

class HeaderReader : public nlohmann::json_sax<Json> {
 public:
  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(std::int64_t value) override { return number(std::to_string(value)); }
  bool number_unsigned(std::uint64_t value) override { return number(std::to_string(value)); }
  bool number_float(double, const std::string& text) override { return number(text); }
  bool string(std::string& value) override {
    if (depth_ == 1 && key_ == "format") header.format = value;
    return true;
  }
  bool binary(Json::binary_t&) override { return true; }
  bool start_object(std::size_t) override { return (++depth_, true); }
  bool key(std::string& text) override {
    if (depth_ == 1) key_ = text;
    return true;
  }
  bool end_object() override { return (--depth_, true); }
  bool start_array(std::size_t) override { return (++depth_, true); }
  bool end_array() override { return (--depth_, true); }
  bool parse_error(std::size_t, const std::string&, const Json::exception&) override { return false; }

  TraceHeader header;

 private:
  bool number(const std::string& text) {
    if (depth_ == 1 && key_ == "version") header.version = text;
    return true;
  }
  std::size_t depth_ = 0;
  std::string key_;
};

}  // namespace

TraceHeader scan_header(std::string_view json) {
  HeaderReader reader;
  Json::sax_parse(json, &reader);
  return std::move(reader.header);
}

}  // namespace spillway
