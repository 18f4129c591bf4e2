// send --dry-run, which tries templates and settings on the tokens that wait.
#pragma once

#include "cmd/terminal/context.hpp"

namespace mailroom {

/// Prints what `send` would mail now, and to whom. Claims nothing, and connects to no relay. Throws
/// Error(configuration) as configured_writer().
ExitCode run_send_preview(Context& context);

}  // namespace mailroom
