// The process of a consumer: what the name of its session says of it, and whether it runs, as far as this
// host can see.
#pragma once

#include <optional>
#include <string>

namespace mailroom::status {

/// A collector's process, as its application_name `mailroom collect USER@HOST:PID` or `mailroom send …`
/// names it.
struct CollectorProcess {
  std::string host;
  std::string pid;
};

/// Returns nullopt for a name that is not of this form.
std::optional<CollectorProcess> collector_process(const std::string& application);

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

}  // namespace mailroom::status
