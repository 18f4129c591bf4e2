// Who may ask the desk for what: it answers no other site and no other host, lets people sign in, and gives
// the requests of those who have to what makes the pages.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "base/log.hpp"
#include "db/conninfo.hpp"
#include "desk/desk_page.hpp"
#include "desk/desk_sessions.hpp"
#include "desk/sign_in.hpp"
#include "process/http_listener.hpp"

namespace mailroom::desk {

struct DeskOptions {
  config::ListenAddress listen{};
  std::string url{};  ///< of a proxy; empty: none
  DeskLimits limits{};
  db::DatabaseTarget target{};  ///< where roles sign in, whatever user it names
};

using DeskFields = std::map<std::string, std::string, std::less<>>;

/// A request of somebody who has signed in. No other thread uses the session meanwhile.
struct DeskCall {
  DeskSession& session;
  std::string path{};
  DeskFields fields{};   ///< of the query, or of the form that was sent
  bool changes = false;  ///< a form was sent, with the token of its session

  std::string field(std::string_view name) const;
};

/// Throws Error for what is shown to the reader instead.
using DeskPages = std::function<DeskPage(DeskCall&)>;

/// Serves until it is destroyed.
class DeskDoor {
 public:
  /// Throws as HttpListener(); Error(configuration) for a URL that is none, and for an address that others
  /// than this host can reach without a proxy with TLS.
  DeskDoor(DeskOptions options, DeskPages pages, Log& log);
  ~DeskDoor();
  DeskDoor(const DeskDoor&) = delete;
  DeskDoor& operator=(const DeskDoor&) = delete;

  /// What to open in a browser.
  std::string url() const;
  /// Ends the sessions whose time is over.
  void end_late() { sessions_.end_late(steady_now()); }

 private:
  using Answer = process::HttpPage;

  Answer answer(const process::HttpCall& call) noexcept;
  Answer checked_answer(const process::HttpCall& call);
  Answer answer_form(const process::HttpCall& call);
  Answer answer_sign_in(const process::HttpCall& call, DeskFields& fields);
  Answer serve(const std::shared_ptr<DeskSession>& session, DeskCall& call);
  DeskPage made(DeskCall& call);
  std::shared_ptr<DeskSession> session_of(const process::HttpCall& call);
  std::string_view secret_of(const process::HttpCall& call) const;
  bool is_own_host(std::string_view host) const;
  bool is_own_site(const process::HttpCall& call) const;
  std::string cookie(std::string_view secret) const;
  Answer written(const DeskPage& page, const DeskReader& reader) const;
  Answer refusal(int status, const std::string& title, const std::string& text) const;

  DeskOptions options_;
  std::string host_{};  ///< that the URL names, with its port
  bool is_secure_ = false;
  DeskPages pages_;
  Log& log_;
  DeskSessions sessions_;
  std::mutex mutex_;  ///< of the next two
  DeskGuesses guesses_;
  int signing_in_ = 0;
  std::unique_ptr<process::HttpListener> listener_;
};

}  // namespace mailroom::desk
