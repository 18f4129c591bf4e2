#pragma once

#include "db/connection.hpp"

namespace mailroom {

/// The oldest mailroom that may work on the schema, as the newest schema version that it must know: the
/// result of the schema's function mailroom_minimum_client(), or 0 without that function. A migration that
/// breaks older binaries replaces the function, so binaries that do not know the migration get the answer
/// too, with any role and whichever tool ran the migration.
long read_minimum_client(Connection& connection);

/// Throws Error(schema), with a fix as the hint, unless a binary that knows versions up to `newest` may work
/// on a schema of version `version`: the schema is too old, or it requires a newer binary.
void require_fitting(long version, long newest, long minimum_client);

}  // namespace mailroom
