#pragma once

#include "schema/recognition.hpp"

namespace mailroom {

/// A migration whose text in this binary is not the one that was recorded when it was applied.
struct EditedMigration {
  int version = 0;
  std::string name{};
  std::string direction{};  ///< of the record: up, adopt or baseline
  std::int64_t at = 0;      ///< microseconds since 1970
  std::string actor{};      ///< who applied it
  std::string made_by{};    ///< the version of mailroom
};

/// How a schema and its record compare with this binary's migrations.
struct Verification {
  std::string schema;
  long version = 0;  ///< that it was compared with: the recorded one, or of tables without a record the
                     ///< nearest
  bool dirty = false;
  bool is_recorded = true;
  Recognition::Verdict verdict = Recognition::Verdict::fits;  ///< of tables without a record
  std::optional<ForeignRecord> beside;
  Drift drift;
  std::vector<EditedMigration> edited;
  long checksums = 0;  ///< versions up to this one that have a checksum on record

  /// Nothing differs from what this binary would have made.
  bool is_sound() const {
    return !dirty && drift.differences.empty() && edited.empty() && verdict == Recognition::Verdict::fits;
  }
};

/// Looks at the schema as look_at_schema() does, whether or not there is a record. Throws Error(schema) when
/// there is nothing to compare, or a version that this binary does not know.
Verification verify_schema(Connection& connection);

/// The same against `version`, for whoever wants to record it, whatever the record says now. Throws
/// Error(schema) for tables that cannot be taken for any version: of the earlier form, or not ours.
Verification verify_before_claim(Connection& connection, long version);

}  // namespace mailroom
