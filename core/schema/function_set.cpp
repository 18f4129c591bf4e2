// Reads the signatures of the functions, and fills them into what is run around the files.

#include "schema/function_set.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <map>

#include "base/encoded_text.hpp"
#include "base/text.hpp"
#include "crypto/digest.hpp"
#include "schema/statements.hpp"

namespace mailroom::schema {
namespace {

constexpr std::string_view create = "CREATE FUNCTION ";
constexpr std::string_view replace = "CREATE OR REPLACE FUNCTION ";

/// The statement without its CREATE; empty if it creates no function.
std::string_view created_function(std::string_view statement) {
  for (const auto words : {create, replace}) {
    if (statement.starts_with(words)) return statement.substr(words.size());
  }
  return {};
}

std::string name_of(std::string_view function) {
  return std::string(function.substr(0, function.find('(')));
}

/// A function up to its LANGUAGE, on one line.
std::string signature_of(std::string_view function) {
  auto line = shortened_statement(function.substr(0, function.find("LANGUAGE ")), std::string::npos);
  line.erase(line.find_last_not_of(' ') + 1);
  return line;
}

/// The types by which the server knows a function: `mailroom_takes(token_action[], token_action)`, from its
/// signature.
std::string identity_of(const std::string& signature) {
  const auto open = signature.find('(');
  const auto end =
      signature.find(") RETURNS") == std::string::npos ? signature.rfind(')') : signature.find(") RETURNS");
  std::vector<std::string> types;
  for (const auto part : split(std::string_view(signature).substr(open + 1, end - open - 1), ',')) {
    const auto parameter = trimmed(part.substr(0, part.find(" DEFAULT ")));
    if (parameter.empty() || parameter.starts_with("OUT ")) continue;
    types.emplace_back(trimmed(parameter.substr(parameter.find(' '))));
  }
  return fmt::format("{}({})", signature.substr(0, open), joined(types, ", "));
}

/// The last statement of `migrations` that makes each function, as a replacement.
std::map<std::string, std::string> beginnings(const std::vector<Migration>& migrations) {
  std::map<std::string, std::string> texts;
  for (const auto& migration : migrations) {
    for (const auto& statement : split_statements(migration.up)) {
      const auto function = created_function(statement.text);
      if (!function.empty()) texts[name_of(function)] = fmt::format("{}{};\n", replace, function);
    }
  }
  return texts;
}

std::string quoted(std::string text) {
  for (std::size_t at = 0; (at = text.find('\'', at)) != std::string::npos; at += 2)
    text.insert(at, 1, '\'');
  return "'" + text + "'";
}

std::string list_of(const std::vector<std::string>& texts) {
  std::vector<std::string> entries;
  for (const auto& text : texts)
    entries.push_back("\n        " + quoted(text));
  return joined(entries, ",");
}

std::string filled(std::string text, const std::map<std::string, std::string>& values) {
  for (const auto& [name, value] : values) {
    for (auto at = text.find(name); at != std::string::npos; at = text.find(name, at + value.size()))
      text.replace(at, name.size(), value);
  }
  return text;
}

std::string checksum_of(const FunctionFiles& files) {
  auto all = files.begin + files.end;
  for (const auto& file : files.files)
    all += file.name + "\n" + file.text;
  std::erase(all, '\r');
  return hex_text(crypto::sha256({all}));
}

int last_line(std::string_view text) {
  return static_cast<int>(line_of(text, text.size()));
}

}  // namespace

FunctionSet make_function_set(const FunctionFiles& files, const std::vector<Migration>& migrations) {
  FunctionSet set;
  set.migration = {migrations.back().version, "functions", "", "", checksum_of(files)};
  std::vector<std::string> of_owner;
  for (const auto& file : files.files) {
    for (const auto& statement : split_statements(file.text)) {
      const auto function = created_function(statement.text);
      if (function.empty()) continue;
      set.signatures.push_back(signature_of(function));
      set.made_in.emplace_back(name_of(function), "functions/" + file.name);
      const auto head = function.substr(0, function.find("$$"));
      if (head.find("SECURITY DEFINER") != std::string_view::npos) of_owner.push_back(name_of(function));
    }
  }
  const auto is_of_owner = [&](const std::string& name) {
    return std::ranges::find(of_owner, name) != of_owner.end();
  };
  std::vector<std::string> kept;
  std::string restored;
  for (const auto& [name, text] : beginnings(migrations)) {
    if (set.file_of(name).empty()) continue;
    kept.push_back(identity_of(signature_of(created_function(text))));
    restored += "\n" + text;
    // The set takes it from everyone; see functions.end.sql.
    if (is_of_owner(name)) restored += fmt::format("GRANT EXECUTE ON FUNCTION {} TO PUBLIC;\n", name);
  }
  std::vector<std::string> functions;
  for (const auto& signature : set.signatures)
    functions.push_back(identity_of(signature));
  const std::map<std::string, std::string> values{{"@checksum@", set.migration.checksum},
                                                  {"@functions@", list_of(functions)},
                                                  {"@signatures@", list_of(set.signatures)},
                                                  {"@kept@", list_of(kept)}};
  set.migration.up = filled(files.begin, values) + "\n";
  for (const auto& file : files.files) {
    set.begins.push_back({"functions/" + file.name, last_line(set.migration.up)});
    set.migration.up += file.text + "\n";
  }
  set.begins.push_back({"", last_line(set.migration.up)});
  set.migration.up += filled(files.end, values);
  set.migration.down = filled(files.down, values) + restored;
  return set;
}

std::optional<FunctionPlace> FunctionSet::place_of(int line) const {
  const auto next =
      std::ranges::upper_bound(begins, line, {}, [](const FunctionPlace& place) { return place.line; });
  if (next == begins.begin() || std::prev(next)->file.empty()) return std::nullopt;
  return FunctionPlace{std::prev(next)->file, line - std::prev(next)->line + 1};
}

std::string FunctionSet::file_of(const std::string& name) const {
  const auto found =
      std::ranges::find(made_in, name, [](const auto& entry) -> const std::string& { return entry.first; });
  return found == made_in.end() ? std::string() : found->second;
}

const FunctionSet& embedded_functions() {
  static const auto set = make_function_set(embedded_function_files(), embedded_migrations());
  return set;
}

}  // namespace mailroom::schema
