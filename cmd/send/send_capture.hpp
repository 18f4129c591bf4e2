// Send --capture: mails are kept and shown instead of sent, for development.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "cmd/terminal/context.hpp"
#include "config/relay_path.hpp"
#include "preview/captured_mails.hpp"
#include "preview/preview_server.hpp"

namespace mailroom::cmd {

/// What --capture means without a directory.
constexpr std::string_view capture_in_page = "page";

struct CaptureOptions {
  std::optional<std::string> directory{};  ///< or capture_in_page; nullopt: mails are sent
  std::optional<std::string> listen{};     ///< where the page is
  bool anyway = false;                     ///< from a database from which mails have left
};

/// The place of captured mails, and the page that shows them, while it exists.
class Capture {
 public:
  /// Makes the directory, which is a temporary one unless it is named, and serves the page and prints where,
  /// unless a directory is named and no address. Throws as MaildirWriter() and PreviewServer().
  Capture(const CaptureOptions& options, Context& context);
  ~Capture();
  Capture(const Capture&) = delete;
  Capture& operator=(const Capture&) = delete;

  /// The relay that keeps mails here.
  const config::RelayTarget& relay() const { return relay_; }
  /// Waits for a signal, if there is a page to look at.
  void wait_for_reader() const;

 private:
  bool is_temporary_;
  std::string directory_;
  config::RelayTarget relay_;
  std::unique_ptr<preview::CapturedMails> mails_;
  std::unique_ptr<preview::PreviewServer> server_;
};

}  // namespace mailroom::cmd
