#pragma once

#include "schema/recognition.hpp"

namespace mailroom {

/// A migration whose text in this binary differs from the text recorded when it was applied.
struct EditedMigration {
  int version = 0;
  std::string name{};
  std::string direction{};  ///< of the record: up, adopt or baseline
  std::int64_t at = 0;      ///< microseconds since 1970
  std::string actor{};      ///< of the record
  std::string made_by{};    ///< the version of mailroom that recorded it
};

/// The result of comparing a schema and its record with this binary's migrations.
struct Verification {
  std::string schema;
  long version = 0;  ///< the version compared with: the recorded one, or the nearest if there is no record
  bool dirty = false;
  bool is_recorded = true;
  Recognition::Verdict verdict = Recognition::Verdict::fits;  ///< of tables without a record
  Drift drift;
  std::vector<EditedMigration> edited;
  long checksums = 0;  ///< the number of versions that have a recorded checksum

  /// True if nothing differs from what this binary's migrations create.
  bool is_sound() const {
    return !dirty && drift.differences.empty() && edited.empty() && verdict == Recognition::Verdict::fits;
  }
};

/// Compares the schema, with or without a record; see inspect_schema(). Throws Error(schema) if there is no
/// schema or this binary does not know its version.
Verification verify_schema(Connection& connection);

/// Compares the schema with `version`, before that version is recorded; ignores the current record. Throws
/// Error(schema) for tables that match no version at all: of the earlier form, or not mailroom's.
Verification verify_before_claim(Connection& connection, long version);

}  // namespace mailroom
