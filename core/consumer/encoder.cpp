// Quotes by RFC 4180 and RFC 8259, and copies text that needs no quotes as it is.

#include "consumer/encoder.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <iterator>
#include <nlohmann/json.hpp>

#include "base/json_text.hpp"

namespace mailroom {
namespace {

std::string_view text_of(const TokenText& token) {
  return {token.data(), token.size()};
}

/// False for characters that JSON escapes (RFC 8259, section 7) and for non-ASCII bytes, which may begin
/// misleading characters.
bool is_plain_json(char c) {
  return c != '"' && c != '\\' && static_cast<unsigned char>(c) < 0x7F;
}

/// `text` must be printable.
void append_json_text(std::string& line, std::string_view text) {
  if (std::all_of(text.begin(), text.end(), is_plain_json)) {
    line += text;
    return;
  }
  std::string escaped;
  for (const char c : text) {
    if (c == '"' || c == '\\') escaped += '\\';
    escaped += c;
  }
  line += escaped_json(std::move(escaped));
}

bool needs_quotes(char c) {
  return c == ',' || c == '"' || c == '\r' || c == '\n';
}

class CsvEncoder final : public Encoder {
 public:
  void begin(const Lease& /*lease*/) override { line_.clear(); }

  void add(const TokenRow& row, const TokenText& token) override {
    if (!line_.empty()) line_ += ',';
    line_ += static_cast<char>('0' + static_cast<int>(row.action));
    append(row.email);
    append(row.login);
    line_ += ',';
    line_ += text_of(token);
    append(row.code);
  }

  std::string_view finish() override {
    line_ += '\n';
    return line_;
  }

 private:
  void append(std::string_view value) {
    line_ += ',';
    append_csv_value(line_, value);
  }

  std::string line_;
};

class JsonlEncoder final : public Encoder {
 public:
  void begin(const Lease& lease) override {
    // clear() instead of an assignment keeps the capacity.
    line_.clear();
    fmt::format_to(std::back_inserter(line_), "{{\"batch\":{},\"queue\":\"", lease.batch);
    append_json_text(line_, lease.queue);
    line_ += "\",\"tokens\":[";
    first_ = true;
  }

  void add(const TokenRow& row, const TokenText& token) override {
    if (!std::exchange(first_, false)) line_ += ',';
    fmt::format_to(std::back_inserter(line_), "{{\"id\":{},\"action\":\"{}\"", row.id,
                   action_name(row.action));
    append("email", row.email);
    append("login", row.login);
    append("token", text_of(token));
    append("code", row.code);
    fmt::format_to(std::back_inserter(line_), ",\"expires_at\":{}}}", row.expires_at);
  }

  std::string_view finish() override {
    line_ += "]}\n";
    return line_;
  }

 private:
  void append(std::string_view name, std::string_view value) {
    fmt::format_to(std::back_inserter(line_), ",\"{}\":\"", name);
    append_json_text(line_, value);
    line_ += '"';
  }

  std::string line_;
  bool first_ = true;
};

}  // namespace

std::unique_ptr<Encoder> make_csv_encoder() {
  return std::make_unique<CsvEncoder>();
}

std::unique_ptr<Encoder> make_jsonl_encoder() {
  return std::make_unique<JsonlEncoder>();
}

void append_csv_value(std::string& line, std::string_view value) {
  if (std::none_of(value.begin(), value.end(), needs_quotes)) {
    line += value;
    return;
  }
  line += '"';
  for (const char c : value) {
    if (c == '"') line += '"';
    line += c;
  }
  line += '"';
}

}  // namespace mailroom
