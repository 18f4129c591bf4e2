// The functions of the schema as one repeatable set: `migrate up` makes it anew when its text has changed.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "schema/migration.hpp"

namespace mailroom::schema {

/// The set of functions of a database, beside that of this binary. The database names the sets that it has
/// had before; see migrations/functions.end.sql.
enum class FunctionState {
  absent,     ///< it has none
  older,      ///< of another mailroom; it has never had that of this binary
  elsewhere,  ///< that of this binary, but it looks for the tables in the schema's former name
  current,    ///< that of this binary
  newer,      ///< of another mailroom; it had that of this binary before
};

/// A place in a file of the set.
struct FunctionPlace {
  std::string file;  ///< `functions/claim.sql`
  int line;          ///< from 1
};

struct FunctionSet {
  std::vector<std::string> signatures{};  ///< `mailroom_takes(p_actions token_action[], …) RETURNS boolean`
  Migration migration{};                  ///< makes the set, and drops it

  /// The place of a line of migration.up; none for what is run around the files.
  std::optional<FunctionPlace> place_of(int line) const;
  /// The file that makes the function `name`: `functions/claim.sql`; empty if none does.
  std::string file_of(const std::string& name) const;

  std::vector<FunctionPlace> begins{};                         ///< the line on which each file begins
  std::vector<std::pair<std::string, std::string>> made_in{};  ///< file by name of the function
};

/// The SHA-256 of the files of the embedded set and of what is run around them, by which databases name it.
/// The build computes it.
const std::string& function_set_checksum();

/// Puts `files` together. `migrations`: the versions, which begin some of the functions for their triggers.
FunctionSet make_function_set(const FunctionFiles& files, const std::vector<Migration>& migrations);

const FunctionSet& embedded_functions();

}  // namespace mailroom::schema
