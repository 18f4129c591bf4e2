#include "queue/encoder.hpp"

#include <nlohmann/json.hpp>

namespace mailroom {
namespace {

std::string_view text_of(const TokenText& token) {
  return {token.data(), token.size()};
}

class CsvEncoder final : public Encoder {
 public:
  void begin(const Lease& /*lease*/) override { line_.clear(); }

  void add(const TokenRow& row, const TokenText& token) override {
    if (!line_.empty()) line_ += ',';
    line_ += static_cast<char>('0' + static_cast<int>(row.action));
    for (const auto value : {row.email, row.login, text_of(token), row.code}) {
      line_ += ',';
      append_csv_value(line_, value);
    }
  }

  std::string_view finish() override {
    line_ += '\n';
    return line_;
  }

 private:
  std::string line_;
};

class JsonlEncoder final : public Encoder {
 public:
  explicit JsonlEncoder(std::string queue) : queue_(std::move(queue)) {}

  void begin(const Lease& lease) override {
    line_ = "{\"batch\":" + std::to_string(lease.batch) + ",\"queue\":" + nlohmann::json(queue_).dump() +
            ",\"tokens\":[";
    first_ = true;
  }

  void add(const TokenRow& row, const TokenText& token) override {
    const nlohmann::ordered_json object{{"id", row.id},
                                        {"action", action_name(row.action)},
                                        {"email", row.email},
                                        {"login", row.login},
                                        {"token", text_of(token)},
                                        {"code", row.code},
                                        {"expires_at", row.expires_at}};
    if (!std::exchange(first_, false)) line_ += ',';
    line_ += object.dump();
  }

  std::string_view finish() override {
    line_ += "]}\n";
    return line_;
  }

 private:
  std::string queue_;
  std::string line_;
  bool first_ = true;
};

}  // namespace

std::unique_ptr<Encoder> make_csv_encoder() {
  return std::make_unique<CsvEncoder>();
}

std::unique_ptr<Encoder> make_jsonl_encoder(std::string queue) {
  return std::make_unique<JsonlEncoder>(std::move(queue));
}

void append_csv_value(std::string& line, std::string_view value) {
  if (value.find_first_of(",\"\r\n") == std::string_view::npos) {
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
