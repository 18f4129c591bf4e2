// Any bytes are read as a consumer's line or refused; what the consumers write is read back, and a torn line
// invents no token.

#include "fuzz/hostile_batch.hpp"
#include "reconcile/consumer_output.hpp"

namespace mailroom::fuzz::fuzz_output_line {
namespace {

std::vector<reconcile::WrittenToken> tokens_of(const std::vector<claim::TokenRow>& rows) {
  std::vector<reconcile::WrittenToken> tokens;
  for (const auto& row : rows)
    tokens.push_back({token_of(row), std::string(row.code)});
  return tokens;
}

void read_any(std::string_view text) {
  const auto line = reconcile::parse_output_line(text);
  if (!line) return;
  require(line->queue.has_value() == text.starts_with('{'), "JSON alone names the queue");
  require(line->queue || !line->tokens.empty(), "a line of CSV has a token");
  // Each token of CSV takes four commas, and one to the next.
  const auto commas = static_cast<std::size_t>(std::count(text.begin(), text.end(), ','));
  require(line->queue || line->tokens.size() * 5 <= commas + 1, "no token comes from nowhere");
}

void read_back(const std::string& line, const std::vector<reconcile::WrittenToken>& tokens, bool is_json) {
  const auto whole = reconcile::parse_output_line(line);
  require(whole && whole->tokens == tokens, "what was written is read back");
  require(whole->queue == (is_json ? std::optional<std::string>(Writing::queue) : std::nullopt),
          "the queue is that of the line");
  // A third of it, and all but its last byte.
  for (const auto size : {line.size() / 3, line.size() - 1}) {
    const auto torn = reconcile::parse_output_line(std::string_view(line).substr(0, size));
    require(!torn || !is_json, "a torn line of JSON is none");
    if (!torn) continue;
    require(torn->tokens.size() <= tokens.size(), "a torn line has no more tokens");
    require(std::equal(torn->tokens.begin(), torn->tokens.end() - 1, tokens.begin()),
            "what is before its last token is as it was");
  }
}

int run(const std::uint8_t* data, std::size_t size) {
  static Writing csv(compose::make_csv_encoder());
  static Writing jsonl(compose::make_jsonl_encoder());
  read_any(text_of(data, size));
  HostileBatch batch(data, size);
  const auto tokens = tokens_of(batch.sound_rows());
  if (const auto line = csv.line_of(batch); !line.empty()) read_back(line, tokens, false);
  if (const auto line = jsonl.line_of(batch); !line.empty()) read_back(line, tokens, true);
  return 0;
}

const Target target("output_line", run);

}  // namespace
}  // namespace mailroom::fuzz::fuzz_output_line
