#pragma once

#include "db/connection.hpp"

namespace mailroom {

/// The oldest mailroom that may work on the schema, by the newest version that it knows: what the function
/// mailroom_minimum_client() of the schema says, or 0 where there is none. A migration that breaks what older
/// binaries do replaces that function, so the answer is there for binaries that do not know the migration,
/// for every role, and whichever tool ran it.
long read_minimum_client(Connection& connection);

/// May a binary that knows versions up to `newest` work on a schema of version `version`? Throws
/// Error(schema) with what to do: the schema is too old, or so new that it needs a newer binary.
void require_fitting(long version, long newest, long minimum_client);

}  // namespace mailroom
