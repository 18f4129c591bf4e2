// Accepts a process only if its host and pid are safe in a shell, since any session may choose its name. Its
// state is read from /proc.

#include "status/collector_process.hpp"

#include <algorithm>
#include <cctype>
#include <fstream>
#include <string_view>

namespace mailroom::status {
namespace {

/// Any user may give a session any name, and an operator types what this accepts into a shell.
bool is_host(const std::string& text) {
  const auto plain = [](unsigned char c) { return std::isalnum(c) != 0 || c == '_' || c == '-' || c == '.'; };
  return !text.empty() && text.front() != '-' && std::all_of(text.begin(), text.end(), plain);
}

bool is_pid(const std::string& text) {
  const auto digit = [](unsigned char c) { return std::isdigit(c) != 0; };
  return !text.empty() && text.size() <= 10 && text.front() != '0' &&
         std::all_of(text.begin(), text.end(), digit);
}

}  // namespace

std::optional<CollectorProcess> collector_process(const std::string& application) {
  const auto at = application.rfind('@');
  const auto colon = application.rfind(':');
  if (at == std::string::npos || colon == std::string::npos || colon <= at + 1) return std::nullopt;
  const auto is_of = [&](const std::string& program) {
    return application.starts_with(program) && (at == program.size() || application[program.size()] == ' ');
  };
  if (!is_of("mailroom collect") && !is_of("mailroom send")) return std::nullopt;
  CollectorProcess process{.host = application.substr(at + 1, colon - at - 1),
                           .pid = application.substr(colon + 1)};
  return is_host(process.host) && is_pid(process.pid) ? std::optional(process) : std::nullopt;
}

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

}  // namespace mailroom::status
