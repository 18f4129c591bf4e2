// init --submission: lets programs mail by SMTP, with a configuration that is there.
#pragma once

#include <string>

#include "base/error.hpp"

namespace mailroom::cmd {

class Context;

/// Makes a certificate and adds the section `submission` to the configuration in `directory`; with
/// `with_systemd` starts the service of the package too. Throws Error(configuration) if there is no
/// configuration, or it has that section.
ExitCode make_submission(const std::string& directory, bool with_systemd, Context& context);

}  // namespace mailroom::cmd
