#pragma once

#include "schema/drift.hpp"

namespace mailroom {

/// A schema and what the migrations create, from one snapshot.
struct SchemaInspection {
  std::string schema;
  std::vector<Catalogue> built;  ///< by version
  Catalogue found;               ///< the existing objects with a name that the migrations use
};

/// Reads the schema that mailroom works in, and builds the migrations in a scratch schema. Runs in a
/// transaction of its own that is rolled back; does not lock or change existing objects. Throws Error(schema)
/// without the privilege to create schemas, Error(failed) on a standby.
SchemaInspection inspect_schema(Connection& connection);

}  // namespace mailroom
