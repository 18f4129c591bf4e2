#pragma once

#include "schema/migration_plan.hpp"
#include "schema/schema_inspection.hpp"

namespace mailroom {

/// The result of matching tables without a recorded version.
struct Recognition {
  enum class Verdict {
    fits,          ///< match a version exactly
    differs,       ///< differ from every version
    earlier_form,  ///< have the form before the first version: secrets as hexadecimal text
    not_ours,      ///< have mailroom's names, but another application created them
  };
  Verdict verdict = Verdict::fits;
  long version = 0;  ///< the matching or nearest version
  Drift drift{};     ///< from that version
};

/// Compares with every version. Of equally near versions the newest wins.
Recognition recognise(const SchemaInspection& look);

/// Throws Error(schema), with a fix as the hint, unless the tables match a version (Verdict::fits).
void require_recognised(const Recognition& recognition, const std::string& schema);

/// Throws Error(schema) if `state` is recorded but none of mailroom's tables exists: the record belongs to
/// another application.
void require_own_tables(Connection& connection, const SchemaState& state);

/// Returns `state`; if it is unrecorded, with the version that the tables match. Throws Error(schema) as
/// require_recognised() and require_own_tables() do.
SchemaState recognised(Connection& connection, SchemaState state);

/// True if one of accounts, tokens and jobs exists.
bool has_tables_of_our_names(Connection& connection);

/// The hint if a name that mailroom needs is taken.
std::string advice_of_own_schema();

/// The statements, in a transaction of their own, that convert the earlier form to version 0.
const char* earlier_form_conversion();

}  // namespace mailroom
