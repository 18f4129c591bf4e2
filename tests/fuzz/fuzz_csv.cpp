// Rows of any bytes, through signer and sink, are read back from CSV as they were, or were refused.

#include "fuzz/hostile_batch.hpp"
#include "support/batch_rows.hpp"

namespace mailroom::fuzz::fuzz_csv {
namespace {

void read_back(const std::string& line, const std::vector<claim::TokenRow>& rows) {
  const auto values = test::parse_record(line);
  require(values.has_value(), "the line is RFC 4180");
  std::vector<std::string> expected;
  for (const auto& row : rows) {
    const std::string action = std::to_string(row.action->number);
    expected.insert(expected.end(), {action, std::string(row.email), std::string(row.login), token_of(row),
                                     std::string(row.code)});
  }
  require(*values == expected, "the values are those of the rows");
}

void encode_any_value(std::string_view value) {
  std::string record;
  compose::append_csv_value(record, value);
  const auto values = test::parse_record(record);
  require(values && *values == std::vector{std::string(value)}, "a single value is read back");
}

int run(const std::uint8_t* data, std::size_t size) {
  static Writing writing(compose::make_csv_encoder());
  HostileBatch batch(data, size);
  const auto line = writing.line_of(batch);
  if (!line.empty()) read_back(line, batch.sound_rows());
  encode_any_value(text_of(data, size));
  return 0;
}

const Target target("csv", run);

}  // namespace
}  // namespace mailroom::fuzz::fuzz_csv
