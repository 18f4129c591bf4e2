// An alias may name further ones; who is not in the file stays, and the service has submission.local_to for
// him.

#include "sendmail/aliases.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <fstream>
#include <iterator>

#include "base/error.hpp"
#include "base/text.hpp"
#include "sendmail/address_list.hpp"

namespace mailroom::sendmail {
namespace {

constexpr int deepest = 10;

/// At commas outside of quotes.
std::vector<std::string> targets_in(std::string_view text) {
  std::vector<std::string> targets(1);
  bool is_quoted = false;
  for (const char c : text) {
    if (c == '"') is_quoted = !is_quoted;
    if (c == ',' && !is_quoted) {
      targets.emplace_back();
    } else if (c != '"') {
      targets.back() += c;
    }
  }
  for (auto& target : targets)
    target = std::string(trimmed(target));
  std::erase(targets, "");
  return targets;
}

}  // namespace

Aliases::Aliases(std::string_view text) {
  std::vector<std::string> lines;
  for (const auto line : split(text, '\n')) {
    const bool is_folded = !line.empty() && (line.front() == ' ' || line.front() == '\t');
    if (is_folded && !lines.empty()) {
      lines.back() += std::string(" ") + std::string(trimmed(line));
    } else if (!trimmed(line).empty() && trimmed(line).front() != '#') {
      lines.emplace_back(trimmed(line));
    }
  }
  for (const auto& line : lines) {
    const auto colon = line.find(':');
    if (colon == std::string::npos) continue;
    auto name = lower_case(std::string(trimmed(std::string_view(line).substr(0, colon))));
    std::erase(name, '"');
    targets_[name] = targets_in(std::string_view(line).substr(colon + 1));
  }
}

Aliases Aliases::of_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return Aliases(std::string(std::istreambuf_iterator<char>(file), {}));
}

std::vector<std::string> Aliases::resolved(const std::vector<std::string>& recipients) const {
  std::vector<std::string> found;
  for (const auto& recipient : recipients)
    follow(recipient, 0, found);
  return found;
}

void Aliases::follow(const std::string& recipient, int depth, std::vector<std::string>& found) const {
  const auto entry = is_local(recipient) ? targets_.find(lower_case(recipient.substr(0, recipient.find('@'))))
                                         : targets_.end();
  if (entry == targets_.end() || depth == deepest) {
    if (std::ranges::find(found, recipient) == found.end()) found.push_back(recipient);
    return;
  }
  for (const auto& target : entry->second) {
    if (target.front() == '|' || target.front() == '/' || target.starts_with(":include:"))
      throw Error(
          ExitCode::unusable,
          fmt::format("the alias {} is {}", recipient, target.front() == '|' ? "a program" : "a file"),
          "mailroom delivers to addresses alone: give the alias one");
    // An alias that names itself is the user.
    if (lower_case(target) == entry->first) {
      if (std::ranges::find(found, target) == found.end()) found.push_back(target);
    } else {
      follow(target, depth + 1, found);
    }
  }
}

}  // namespace mailroom::sendmail
