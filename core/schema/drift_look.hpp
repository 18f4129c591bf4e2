#pragma once

#include "schema/drift.hpp"

namespace mailroom {

/// A schema beside what the migrations build, as one moment shows them.
struct SchemaLook {
  std::string schema;
  std::vector<Catalogue> built;  ///< by version
  Catalogue found;               ///< what bears a name that one of them makes
};

/// Looks at the schema that mailroom works in. Builds the migrations in a schema that only its own
/// transaction sees, which is rolled back: nothing stays, and nothing that exists is locked or touched.
/// Throws Error(schema) without the privilege to create schemas, Error(failed) on a standby.
SchemaLook look_at_schema(Connection& connection);

}  // namespace mailroom
