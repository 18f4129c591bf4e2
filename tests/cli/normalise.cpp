#include "normalise.hpp"

#include <algorithm>
#include <string_view>

#include "base/pattern.hpp"

namespace mailroom::golden {
namespace {

constexpr std::string_view token_alphabet =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
constexpr std::string_view hex_digits = "0123456789abcdefABCDEF";
constexpr std::string_view digits_and_signs = "0123456789-_";
constexpr std::size_t token_length = 86;
constexpr std::size_t key_length = 64;

bool consists_of(std::string_view text, std::string_view alphabet) {
  return text.find_first_not_of(alphabet) == std::string_view::npos;
}

void replace_all(std::string& text, const std::string& from, const std::string& to) {
  if (from.empty()) return;
  for (auto at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size())) {
    text.replace(at, from.size(), to);
  }
}

/// Names tokens and keys, which are known by their length and alphabet alone.
std::string name_secrets(std::string_view text) {
  std::string result;
  while (!text.empty()) {
    const auto start = std::min(text.find_first_of(token_alphabet), text.size());
    result.append(text.substr(0, start));
    text.remove_prefix(start);
    const auto word = text.substr(0, text.find_first_not_of(token_alphabet));
    // A rule of dashes under a table's head is no token.
    if (word.size() == token_length && !consists_of(word, digits_and_signs)) {
      result.append("<token>");
    } else if (word.size() == key_length && consists_of(word, hex_digits)) {
      result.append("<key>");
    } else {
      result.append(word);
    }
    text.remove_prefix(word.size());
  }
  return result;
}

}  // namespace

std::string normalise(std::string text, const Places& places) {
  static const Pattern time(
      R"(\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}(:\d{2}([.,]\d+)?)?( ?(Z|UTC)\b|[+-]\d{2}(:?\d{2})?)?)");
  static const Pattern uuid(R"(\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b)");
  static const Pattern pid(R"(\bpid[= ]\d+)");
  static const Pattern duration(R"(\bin (\d+(\.\d+)? ?(ns|us|µs|ms|s|min|m|h|d))+\b)");
  static const Pattern library(R"(\(([A-Za-z]\w+) \d+\.\d[\w.-]*\))");
  for (const auto& [place, name] : places)
    replace_all(text, place, name);
  text = uuid.replaced(text, "<uuid>");
  text = time.replaced(text, "<time>");
  text = library.replaced(text, "($1 <version>)");
  text = pid.replaced(text, "pid=<pid>");
  text = duration.replaced(text, "in <duration>");
  return name_secrets(text);
}

}  // namespace mailroom::golden
