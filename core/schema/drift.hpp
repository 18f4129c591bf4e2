#pragma once

#include <optional>
#include <set>

#include "schema/catalogue.hpp"

namespace mailroom {

/// An object that is not as the migrations build it.
struct Difference {
  ObjectKind kind = ObjectKind::table;
  std::string name{};      ///< as in CatalogueKey
  std::string table{};     ///< that it belongs to; empty for none
  std::string expected{};  ///< empty: it should not be there
  std::string found{};     ///< empty: it is missing
  std::optional<int>
      made{};  ///< the version that makes it as expected, or, of what should not be there, makes it
};

struct Drift {
  std::vector<Difference> differences;
  /// Columns and indexes that an application has added to our tables, and constraints on nothing but such
  /// columns: nothing is wrong with them.
  std::vector<Difference> additions;
};

/// Digests of bodies that stand for what 0_init makes, by trigger function: see CatalogueEntry.
using KnownBodies = std::map<std::string, std::set<std::string>>;

/// The trigger functions as the original system's 0_init wrote them. They do the same as ours.
const KnownBodies& original_bodies();

/// What differs between `found` and version `version` of `built`, which holds every version that this binary
/// knows. An object that only another version makes should not be there, except an
/// index, which that version will find in place; of what belongs to a table that is
/// missing or should not be there nothing is said. Where the version has a function as 0_init makes it, one
/// of its `known` bodies will do.
Drift compare(const std::vector<Catalogue>& built, std::size_t version, const Catalogue& found,
              const KnownBodies& known = original_bodies());

/// The names of tables, sequences, types and functions that any version of `built` makes, for read_catalogue.
std::vector<std::string> object_names(const std::vector<Catalogue>& built);

}  // namespace mailroom
