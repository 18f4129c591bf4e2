// Whether a schema is what the migrations of this binary make, and which version unrecorded tables have.
#pragma once

#include "schema/bookkeeping.hpp"
#include "schema/drift.hpp"

namespace mailroom::schema {

/// How tables match the versions of the schema.
enum class SchemaMatch {
  fits,          ///< match the first version or the newest exactly
  differs,       ///< differ from both
  earlier_form,  ///< have the form before the first version: secrets as hexadecimal text
  not_ours,      ///< have mailroom's names, but another application created them
};

/// A migration whose text in this binary differs from the text recorded when it was applied.
struct EditedMigration {
  int version = 0;
  std::string direction{};  ///< of the record: up, adopt or baseline
  Moment at{};
  std::string actor{};    ///< of the record
  std::string made_by{};  ///< the version of mailroom that recorded it
};

/// The result of comparing a schema and its record with this binary's migrations.
struct Verification {
  std::string schema{};
  std::string quoted_schema{};  ///< for SQL
  std::string crypto_schema{};  ///< that of the extension pgcrypto, for SQL
  long version =
      0;  ///< the version compared with: the recorded one; without a record the nearer of 0 and the newest
  bool dirty = false;
  bool is_recorded = true;
  SchemaMatch match = SchemaMatch::fits;  ///< of tables without a record
  Drift drift{};
  std::vector<EditedMigration> edited{};
  long checksums = 0;  ///< the number of versions that have a recorded checksum
  /// Of the schema: functions of another set than that of this binary are not compared.
  FunctionState functions = FunctionState::absent;

  /// True at the newest version with functions that this binary would make anew.
  bool lacks_functions() const {
    return version == embedded_migrations().back().version && functions < FunctionState::current;
  }
  /// True if nothing differs from what this binary's migrations create.
  bool is_sound() const {
    return !dirty && drift.differences.empty() && edited.empty() && match == SchemaMatch::fits &&
           (!is_recorded || !lacks_functions());
  }
  /// `one thing differs`, `3 things differ`
  std::string differ_text() const;
};

/// Compares the schema, with or without a record. Builds the migrations in a scratch schema, in a transaction
/// that is rolled back; does not lock or change existing objects. Throws Error(schema) if there is no schema,
/// if this binary does not know its version, or without the privilege to create schemas; Error(failed) on a
/// standby.
Verification verify_schema(db::Connection& connection);

/// Compares the schema with `version`, before that version is recorded; ignores the current record. Throws
/// Error(schema) for tables that cannot be of any version: of the earlier form, or not mailroom's.
Verification verify_before_claim(db::Connection& connection, long version);

/// Throws Error(schema), with a fix as the hint, unless the tables match (SchemaMatch::fits).
void require_recognised(const Verification& verification);

/// Returns `state`; if it is unrecorded, with the version that the tables match, 0 or the newest. Throws
/// Error(schema) if they match neither, and if `state` is recorded but none of mailroom's tables exists: the
/// record belongs to another application.
SchemaState recognised(db::Connection& connection, SchemaState state);

/// The statements, in a transaction of their own, that convert the earlier form to version 0.
std::string earlier_form_conversion(const Verification& verification);

}  // namespace mailroom::schema
