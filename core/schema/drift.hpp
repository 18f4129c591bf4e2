// Compares a schema with its migrations, sorts what differs into drift and harmless additions, and shows it
// line by line.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "schema/catalogue.hpp"

namespace mailroom::schema {

/// A line of one of two texts or of both.
struct DiffLine {
  enum class Side { both, before, after };
  Side side = Side::both;
  std::string text;

  bool operator==(const DiffLine&) const = default;
};

/// The lines of `before` and `after` in order; lines of their longest common subsequence appear once. Time
/// and memory are proportional to the product of the numbers of lines.
std::vector<DiffLine> diff_lines(std::string_view before, std::string_view after);

/// `lines` with at most `context` common lines around each change; a common line `…` replaces those omitted.
std::vector<DiffLine> only_changes(const std::vector<DiffLine>& lines, std::size_t context);

/// An object that differs from what the migrations create.
struct Difference {
  ObjectKind kind = ObjectKind::table;
  std::string name{};      ///< as in CatalogueKey
  std::string expected{};  ///< the definition; empty if the object is unexpected
  std::string found{};     ///< the definition; empty if the object is missing
  /// The version that creates it as expected; for an unexpected object, the version that creates it, if any.
  std::optional<int> made{};
};

struct Drift {
  std::vector<Difference> differences;
  /// What an application has added to accounts, which belongs to it, row security included; of the other
  /// tables columns and indexes, and constraints on such columns only; row security if every table has it.
  /// They are not a problem.
  std::vector<Difference> additions;
};

/// By trigger function, the digest of a body that is equivalent to that of 0_init: see CatalogueEntry.
using KnownBodies = std::map<std::string, std::string>;

/// The trigger functions of the original system's 0_init, which do the same as those of this 0_init.
const KnownBodies& original_bodies();

/// Compares `found` with version `version` of `built`, which has every version that this binary knows. An
/// object that only another version creates is unexpected, except an index, which that version will find in
/// place. Parts of a missing or unexpected table are not reported. For a function that is unchanged since
/// 0_init, its `known` body is accepted.
Drift compare(const std::vector<Catalogue>& built, std::size_t version, const Catalogue& found,
              const KnownBodies& known = original_bodies());

/// The names of tables, sequences, types and functions that any version of `built` creates, for
/// read_catalogue().
std::vector<std::string> object_names(const std::vector<Catalogue>& built);

}  // namespace mailroom::schema
