// Serves the page of mails to browsers on this host: the page itself, what it asks for, and when something
// has changed.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

#include "base/threads.hpp"
#include "preview/preview_json.hpp"
#include "process/http_listener.hpp"

namespace mailroom::preview {

/// The address that --listen names. Throws Error(usage).
config::ListenAddress preview_address(const std::string& text);

/// Serves until it is destroyed. Where others than this host can connect, each path begins with a secret.
class PreviewServer {
 public:
  /// Throws as HttpListener(). `source` outlives this.
  PreviewServer(const config::ListenAddress& address, PreviewSource& source);
  ~PreviewServer();
  PreviewServer(const PreviewServer&) = delete;
  PreviewServer& operator=(const PreviewServer&) = delete;

  /// True if others than this host can connect.
  bool is_open() const { return is_open_; }
  /// What to open in a browser.
  std::string url() const;

 private:
  process::HttpPage answer(const process::HttpCall& call) noexcept;
  process::HttpPage checked_answer(const process::HttpCall& call);
  process::HttpPage answer_within(const process::HttpCall& call, const std::string& path);
  process::HttpPage list();
  process::HttpPage show(const process::HttpCall& call);
  std::uint64_t mails_version();
  process::HttpPage wait_for_change(const process::HttpCall& call);
  process::HttpPage frame(const process::HttpCall& call, std::string_view id);
  process::HttpPage source_of(std::string_view id);
  process::HttpPage file_of(std::string_view id, std::string_view number);
  /// Numbers a mail; `place` is its item and locale.
  NumberedMail keep(const std::string& place, std::shared_ptr<const MailView> mail);
  std::optional<NumberedMail> last_good(const std::string& place);
  std::shared_ptr<const MailView> find(std::string_view id);
  bool is_for_us(const process::HttpCall& call) const;
  void watch();

  PreviewSource& source_;
  bool is_open_;        ///< others than this host can connect
  std::string secret_;  ///< of the path; empty on loopback
  std::mutex mutex_;    ///< of what follows
  std::condition_variable changed_;
  std::uint64_t version_ = 1;       ///< of the mails
  std::uint64_t list_version_ = 1;  ///< of the list
  std::uint64_t next_id_ = 1;
  struct {
    std::uint64_t version = 0;
    std::string text;
  } listed_;  ///< the list as it was last asked for
  bool has_ended_ = false;
  std::deque<NumberedMail> shown_;
  std::map<std::string, NumberedMail> last_good_;
  EventFd ends_;
  std::unique_ptr<process::HttpListener> listener_;
  std::thread thread_;
};

}  // namespace mailroom::preview
