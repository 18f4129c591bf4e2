// Finds the address by the name that providers give its column or member, and takes the first column where
// none is named.

#include "suppression/address_list.hpp"

#include <algorithm>
#include <array>

#include "base/error.hpp"
#include "base/json.hpp"
#include "base/text.hpp"

namespace mailroom::suppression {
namespace {

/// In lower case, without blanks, `-` and `_`.
bool is_name_of_address(std::string_view name) {
  constexpr std::array<std::string_view, 5> names{"address", "email", "emailaddress", "recipient", "mail"};
  auto plain = lower_case(name);
  std::erase_if(plain, [](char c) { return c == ' ' || c == '-' || c == '_'; });
  return std::ranges::find(names, plain) != names.end();
}

/// The member `topic` is of our own export.
void add_addresses_of(const nlohmann::json& value, std::vector<ListedAddress>& addresses) {
  const auto topic = value.is_object() ? value.find("topic") : value.end();
  for (const auto& [name, member] : value.items()) {
    if (member.is_structured()) {
      add_addresses_of(member, addresses);
    } else if (member.is_string() && value.is_object() && is_name_of_address(name)) {
      addresses.push_back(
          {.address = member.get<std::string>(),
           .topic = topic != value.end() && topic->is_string() ? topic->get<std::string>() : ""});
    }
  }
}

/// The cells of a line of CSV.
std::vector<std::string> cells_of(std::string_view line, char separator) {
  std::vector<std::string> cells(1);
  bool is_quoted = false;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (c == '"' && is_quoted && i + 1 < line.size() && line[i + 1] == '"') {
      cells.back() += c;
      ++i;
    } else if (c == '"' && (is_quoted || trimmed(cells.back()).empty())) {
      is_quoted = !is_quoted;
    } else if (c == separator && !is_quoted) {
      cells.emplace_back();
    } else {
      cells.back() += c;
    }
  }
  return cells;
}

}  // namespace

std::vector<ListedAddress> AddressList::read(std::string_view line) {
  constexpr std::string_view mark = "\xef\xbb\xbf";
  if (is_first_ && line.starts_with(mark)) line.remove_prefix(mark.size());
  line = trimmed(line);
  if (line.empty()) return {};
  if (!begun_.empty() || line.front() == '{' || line.front() == '[') return read_json(line);
  auto address = read_cell(line);
  is_first_ = false;
  if (address.empty()) return {};
  return {{.address = std::move(address)}};
}

std::vector<ListedAddress> AddressList::read_json(std::string_view line) {
  is_first_ = false;
  if (begun_.size() + line.size() > longest_value) throw Error(ExitCode::usage, "the JSON is too long");
  begun_.append(line).append("\n");
  // Elsewhere a value does not end: it need not be parsed for each line.
  const bool may_end = line.back() == '}' || line.back() == ']';
  const auto value = may_end ? try_parse_json(begun_) : nlohmann::json();
  if (!value.is_structured()) return {};
  begun_.clear();
  std::vector<ListedAddress> addresses;
  add_addresses_of(value, addresses);
  return addresses;
}

std::string AddressList::read_cell(std::string_view line) {
  if (is_first_ && line.find(',') == std::string_view::npos) {
    const auto other = line.find_first_of(";\t");
    if (other != std::string_view::npos) separator_ = line[other];
  }
  const auto cells = cells_of(line, separator_);
  const bool is_heading = is_first_ && line.find('@') == std::string_view::npos;
  if (is_heading) {
    const auto named =
        std::ranges::find_if(cells, [](const auto& cell) { return is_name_of_address(trimmed(cell)); });
    if (named != cells.end()) column_ = static_cast<std::size_t>(named - cells.begin());
    return {};
  }
  return column_ < cells.size() ? std::string(trimmed(cells[column_])) : std::string();
}

}  // namespace mailroom::suppression
