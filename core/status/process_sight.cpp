// Reads the state of a process from /proc.

#include "status/process_sight.hpp"

#include <fstream>
#include <string_view>

#include "status/fix_commands.hpp"

namespace mailroom {

ProcessSight read_process_stat(const std::string& text) {
  // The name is in parentheses, and may contain some.
  const auto open = text.find('(');
  const auto close = text.rfind(')');
  if (open == std::string::npos || close == std::string::npos || close + 2 >= text.size())
    return ProcessSight::unknown;
  if (std::string_view(text).substr(open + 1, close - open - 1) != "mailroom") return ProcessSight::unknown;
  const char state = text[close + 2];
  if (state == 'Z' || state == 'X') return ProcessSight::unknown;
  return state == 'T' || state == 't' ? ProcessSight::stopped : ProcessSight::runs;
}

ProcessSight see_process(const std::string& application, const std::string& here) {
  const auto process = collector_process(application);
  if (!process || process->host != here) return ProcessSight::unknown;
  std::ifstream file("/proc/" + process->pid + "/stat");
  std::string text;
  return std::getline(file, text) ? read_process_stat(text) : ProcessSight::unknown;
}

}  // namespace mailroom
