// Tells drift from what an application may add, and finds the migration that made each object.

#include "schema/drift.hpp"

#include <algorithm>
#include <set>
#include <tuple>

#include "base/text.hpp"

namespace mailroom::schema {
namespace {

/// The part of a function's definition before the body.
std::string head(const std::string& definition) {
  return definition.substr(0, definition.find("AS $function$"));
}

/// The part of a definition that identifies its migration: of a function only the body, since another
/// migration may set its properties.
std::string written(const std::string& definition) {
  const auto body = definition.find("AS $function$");
  return body == std::string::npos ? definition : definition.substr(body);
}

/// True if the only difference is that row security is enabled on a table.
bool is_secured(const CatalogueEntry& expected, const std::string& found) {
  return found == expected.definition + " with row level security";
}

class Comparison {
 public:
  Comparison(const std::vector<Catalogue>& built, std::size_t version, const Catalogue& found,
             const KnownBodies& known)
      : built_(built), version_(version), expected_(built.at(version)), found_(found), known_(known) {}

  Drift run() {
    for (const auto& [key, entry] : expected_) {
      const auto present = found_.find(key);
      if (present == found_.end()) {
        report(key, entry, {});
      } else if (!is_same(key, entry, present->second)) {
        report(key, entry, present->second.definition);
      }
    }
    for (const auto& [key, entry] : found_) {
      if (expected_.count(key) == 0) judge_unexpected(key, entry);
    }
    const auto in_order = [](const Difference& a, const Difference& b) {
      return std::tie(a.kind, a.name) < std::tie(b.kind, b.name);
    };
    std::sort(drift_.differences.begin(), drift_.differences.end(), in_order);
    return std::move(drift_);
  }

 private:
  bool is_same(const CatalogueKey& key, const CatalogueEntry& expected, const CatalogueEntry& found) const {
    if (expected.definition == found.definition) return true;
    const auto first = built_.front().find(key);
    const auto bodies = known_.find(key.name);
    return key.kind == ObjectKind::function && first != built_.front().end() && bodies != known_.end() &&
           expected.body_digest == first->second.body_digest && bodies->second == found.body_digest &&
           head(expected.definition) == head(found.definition);
  }

  bool is_expected_table(const std::string& table) const {
    return expected_.count({ObjectKind::table, table}) > 0 && found_.count({ObjectKind::table, table}) > 0;
  }

  /// True if row security is enabled on every table, as some hosts do with an event trigger.
  bool all_are_secured() const {
    return std::all_of(expected_.begin(), expected_.end(), [&](const auto& object) {
      const auto found = found_.find(object.first);
      return object.first.kind != ObjectKind::table ||
             (found != found_.end() && is_secured(object.second, found->second.definition));
    });
  }

  bool is_added_column(const std::string& table, const std::string& column) const {
    return expected_.count({ObjectKind::column, table + "." + column}) == 0;
  }

  /// True for objects that an application may add: any part of accounts, whose rows it inserts; of other
  /// tables nothing that changes what an INSERT or UPDATE of mailroom does.
  bool is_addition(const CatalogueKey& key, const CatalogueEntry& entry) const {
    if (key.kind == ObjectKind::index || entry.table == "accounts") return true;
    if (key.kind == ObjectKind::column) return !entry.must_be_given;
    return key.kind == ObjectKind::constraint && !entry.columns.empty() &&
           std::all_of(entry.columns.begin(), entry.columns.end(),
                       [&](const std::string& column) { return is_added_column(entry.table, column); });
  }

  std::optional<int> maker_of_unexpected(const CatalogueKey& key) const {
    for (std::size_t version = 0; version < built_.size(); ++version) {
      if (built_[version].count(key) > 0) return static_cast<int>(version);
    }
    return std::nullopt;
  }

  /// True if a later migration creates the same index; it will find the index in place.
  bool is_index_of_later(const CatalogueKey& key, const CatalogueEntry& entry, int maker) const {
    return key.kind == ObjectKind::index &&
           built_[static_cast<std::size_t>(maker)].at(key).definition == entry.definition;
  }

  void judge_unexpected(const CatalogueKey& key, const CatalogueEntry& entry) {
    if (!entry.table.empty() && !is_expected_table(entry.table)) return;
    const auto maker = maker_of_unexpected(key);
    const bool is_harmless = maker ? is_index_of_later(key, entry, *maker) : is_addition(key, entry);
    (is_harmless ? drift_.additions : drift_.differences)
        .push_back({key.kind, key.name, {}, entry.definition, maker});
  }

  void report(const CatalogueKey& key, const CatalogueEntry& expected, const std::string& found) {
    if (!expected.table.empty() && !is_expected_table(expected.table)) return;
    if (is_secured(expected, found) && (key.name == "accounts" || all_are_secured())) {
      drift_.additions.push_back({key.kind, key.name, expected.definition, found, {}});
      return;
    }
    auto made = version_;
    const auto is_as_expected = [&](const Catalogue& before) {
      const auto entry = before.find(key);
      return entry != before.end() && written(entry->second.definition) == written(expected.definition);
    };
    while (made > 0 && is_as_expected(built_[made - 1]))
      --made;
    drift_.differences.push_back({key.kind, key.name, expected.definition, found, static_cast<int>(made)});
  }

  const std::vector<Catalogue>& built_;
  std::size_t version_;
  const Catalogue& expected_;
  const Catalogue& found_;
  const KnownBodies& known_;
  Drift drift_;
};

using Lines = std::vector<std::string_view>;

Lines lines_of(std::string_view text) {
  auto lines = split(text, '\n');
  if (lines.back().empty()) lines.pop_back();
  return lines;
}

/// lengths[i][j] is the length of the longest common subsequence of before[i…] and after[j…].
std::vector<std::vector<std::size_t>> common_lengths(const Lines& before, const Lines& after) {
  std::vector<std::vector<std::size_t>> lengths(before.size() + 1,
                                                std::vector<std::size_t>(after.size() + 1));
  for (auto i = before.size(); i-- > 0;) {
    for (auto j = after.size(); j-- > 0;) {
      lengths[i][j] =
          before[i] == after[j] ? lengths[i + 1][j + 1] + 1 : std::max(lengths[i + 1][j], lengths[i][j + 1]);
    }
  }
  return lengths;
}

}  // namespace

const KnownBodies& original_bodies() {
  static const KnownBodies bodies{
      {"trg_before_account_insert()", "c1bed63272281e2ed45050a1bc0e0e9243d6821b50e425696f1e8f0ca3c49746"},
      {"trg_before_account_status_change()",
       "c1b9e4b4116339ed48da66b595892d7450216d570d29d9eb12d75a30f5f51e8c"},
      {"trg_after_token_consumed()", "d5fca2faa6bb98d6aea316be4694fbd389f1261e505be6344b91ea7fde64d986"},
      {"trg_after_token_inserted()", "59dc5c147a91e5e16fc8505d8f8ca2c27f4cdbca238f8250bb6b4fea634a8946"},
  };
  return bodies;
}

Drift compare(const std::vector<Catalogue>& built, std::size_t version, const Catalogue& found,
              const KnownBodies& known) {
  return Comparison(built, version, found, known).run();
}

std::vector<std::string> object_names(const std::vector<Catalogue>& built) {
  std::set<std::string> names;
  for (const auto& catalogue : built) {
    for (const auto& [key, entry] : catalogue) {
      if (entry.table.empty() && key.kind != ObjectKind::rule)
        names.insert(key.name.substr(0, key.name.find('(')));
    }
  }
  return {names.begin(), names.end()};
}

std::vector<DiffLine> diff_lines(std::string_view before_text, std::string_view after_text) {
  const auto before = lines_of(before_text);
  const auto after = lines_of(after_text);
  const auto lengths = common_lengths(before, after);
  std::vector<DiffLine> lines;
  std::size_t i = 0;
  std::size_t j = 0;
  while (i < before.size() || j < after.size()) {
    if (i < before.size() && j < after.size() && before[i] == after[j]) {
      lines.push_back({DiffLine::Side::both, std::string(before[i++])});
      ++j;
    } else if (j == after.size() || (i < before.size() && lengths[i + 1][j] >= lengths[i][j + 1])) {
      lines.push_back({DiffLine::Side::before, std::string(before[i++])});
    } else {
      lines.push_back({DiffLine::Side::after, std::string(after[j++])});
    }
  }
  return lines;
}

std::vector<DiffLine> only_changes(const std::vector<DiffLine>& lines, std::size_t context) {
  std::vector<bool> is_kept(lines.size());
  for (std::size_t at = 0; at < lines.size(); ++at) {
    if (lines[at].side == DiffLine::Side::both) continue;
    for (auto i = at - std::min(at, context); i < std::min(at + context + 1, lines.size()); ++i)
      is_kept[i] = true;
  }
  std::vector<DiffLine> kept;
  for (std::size_t at = 0; at < lines.size(); ++at) {
    if (is_kept[at]) {
      kept.push_back(lines[at]);
    } else if (at == 0 || is_kept[at - 1]) {
      kept.push_back({DiffLine::Side::both, "…"});
    }
  }
  return kept;
}

}  // namespace mailroom::schema
