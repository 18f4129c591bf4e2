// Rows of any bytes, through signer and sink, are read back from JSON as they were, or were refused.

#include "fuzz/hostile_batch.hpp"

namespace mailroom::fuzz::fuzz_jsonl {
namespace {

void read_back(const std::string& line, const std::vector<claim::TokenRow>& rows) {
  const auto object = parse_json(line);
  auto expected = nlohmann::json{{"batch", 7}, {"queue", "q,\"\\"}, {"tokens", nlohmann::json::array()}};
  for (const auto& row : rows) {
    expected["tokens"].push_back({{"id", row.id},
                                  {"action", row.action->name},
                                  {"email", row.email},
                                  {"login", row.login},
                                  {"token", token_of(row)},
                                  {"code", row.code},
                                  {"expires_at", row.expires_at}});
  }
  require(object == expected, "the object is that of the rows");
}

int run(const std::uint8_t* data, std::size_t size) {
  static Writing writing(compose::make_jsonl_encoder());
  HostileBatch batch(data, size);
  const auto line = writing.line_of(batch);
  if (!line.empty()) read_back(line, batch.sound_rows());
  return 0;
}

const Target target("jsonl", run);

}  // namespace
}  // namespace mailroom::fuzz::fuzz_jsonl
