#pragma once

#include <optional>

#include "schema/drift_look.hpp"
#include "schema/migration_plan.hpp"
#include "schema/recognition_records.hpp"

namespace mailroom {

/// What tables without a record of their version are.
struct Recognition {
  enum class Verdict {
    fits,          ///< a version, exactly
    fits_foreign,  ///< a version, exactly, but beside another tool's record
    differs,       ///< from every version
    earlier_form,  ///< of the schema, before the first version: secrets as hexadecimal text
    not_ours,      ///< tables of our names that somebody else made
  };
  Verdict verdict = Verdict::fits;
  long version = 0;  ///< that fits, or is nearest
  Drift drift{};     ///< from that version
  std::optional<ForeignRecord> beside{};
};

/// Compares with every version, the newest first.
Recognition recognise(const SchemaLook& look, const std::optional<ForeignRecord>& beside);

/// Throws Error(schema) with what was found and what to do, unless the tables fit a version.
void require_recognised(const Recognition& recognition, const std::string& schema);

/// Throws Error(schema) if `state` is a record, and none of our tables is there: another application's
/// record.
void require_own_tables(Connection& connection, const SchemaState& state);

/// `state` for whoever goes on from it: where there is no record, the version that the tables fit. Throws
/// Error(schema) as require_recognised() and require_own_tables() do.
SchemaState recognised(Connection& connection, SchemaState state);

/// True if one of accounts, tokens and jobs is there.
bool has_tables_of_our_names(Connection& connection);

/// The statements, in a transaction of their own, that make version 0 of the earlier form.
const char* earlier_form_conversion();

}  // namespace mailroom
