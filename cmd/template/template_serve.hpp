// Template serve: a page on this host that shows the mails of templates, and how every command with such a
// page serves it.
#pragma once

#include <optional>
#include <string>

#include "cmd/terminal/context.hpp"
#include "preview/preview_server.hpp"

namespace mailroom::cmd {

constexpr std::string_view default_preview_address = "127.0.0.1:8025";

struct ServeOptions {
  std::string listen{default_preview_address};
  std::string profile{};                 ///< empty: that of the message, or `default`
  std::optional<std::string> message{};  ///< the id of a message that is shown, too
};

/// Serves until a signal. Throws as PreviewServer(), and Error(unusable) without such a message.
ExitCode run_template_serve(const ServeOptions& options, Context& context);

/// Prints where the page is, and says who can open it.
void tell_of_page(const preview::PreviewServer& server, Context& context);

}  // namespace mailroom::cmd
