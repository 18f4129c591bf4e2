// init --roles: makes the roles of docs/security.md for a schema that is there.
#pragma once

#include <string>

#include "base/error.hpp"

namespace mailroom::cmd {

class Context;

struct RoleOptions {
  bool is_given = false;
  std::string prefix = "mailroom";
  bool dry_run = false;
};

ExitCode make_roles(const RoleOptions& options, Context& context);

}  // namespace mailroom::cmd
