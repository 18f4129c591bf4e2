// Takes the name from the server's message, and asks for the names that exist.

#include "cmd/terminal/unknown_queue.hpp"

#include "queue/queue_definition.hpp"

namespace mailroom {

Error explained_unknown_queue(const DatabaseError& error, Context& context) {
  const std::string_view message = error.what();
  const auto first = message.find('"');
  const auto last = message.rfind('"');
  if (error.sqlstate() != sqlstate::unknown_queue || first == last) return error;
  try {
    Connection connection(configured_database(context.settings()), "mailroom queue",
                          {.answer = std::chrono::seconds(3)});
    return unknown_queue(std::string(message.substr(first + 1, last - first - 1)), queue_names(connection));
  } catch (const Error&) {
    return error;
  }
}

}  // namespace mailroom
