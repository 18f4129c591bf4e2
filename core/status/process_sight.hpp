// Whether the process of a consumer runs or is stopped, as far as this host can see.
#pragma once

#include <string>

namespace mailroom {

enum class ProcessSight {
  unknown,  ///< on another host, or gone
  runs,
  stopped,  ///< by SIGSTOP or a debugger: it does nothing until SIGCONT
};

/// Sees the process that `application`, the application_name of a consumer, names if it is on `here`, the
/// name of this host. A process of another program, which has the same number in another container, is
/// unknown.
ProcessSight see_process(const std::string& application, const std::string& here);

/// Reads the text of /proc/PID/stat (proc(5)). Unknown for a process that is not mailroom's.
ProcessSight read_process_stat(const std::string& text);

}  // namespace mailroom
