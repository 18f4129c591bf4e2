// Which rights on mailroom's objects nobody meant to give: those that no role of the list has.
#pragma once

#include <string>

#include "schema/roles.hpp"

namespace mailroom::schema {

/// What should be taken from the role `name`, which was granted `held`; an empty name is everyone. A role
/// that ends as one of the list (`shop_reader`) keeps what that one may have. Any other keeps what it has if
/// that is what a producer may have, or most of what another role of the list is given, or among `also`; if
/// it has more, it loses all: who was given every table has what each role needs, too.
Privileges undue_rights(const std::string& name, const Privileges& held, const Privileges& also = {});

/// `SELECT on tokens, UPDATE on jobs, mailroom_batches and 3 more`
std::string described(const Privileges& privileges);

/// The statements that take them from `grantee`; that and `schema` are quoted.
std::vector<std::string> revoke_statements(const Privileges& undue, const Privileges& held,
                                           const std::string& schema, const std::string& grantee);

}  // namespace mailroom::schema
