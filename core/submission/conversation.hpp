// The dialogue with one client, without a socket: takes what has come, answers, and says what it waits for.
//
//   state         takes                       goes to
//   command       a line                      command, login, data, chunk, waiting, over
//   login_*       a line of AUTH              command, waiting
//   data          lines until CRLF . CRLF     waiting, command
//   chunk         so many bytes               waiting, command
//   waiting       nothing                     command: secured(), logged_in(), stored() and the like
//   over          nothing                     -
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "submission/command.hpp"
#include "submission/data_reader.hpp"
#include "submission/reply.hpp"
#include "submission/submitted_mail.hpp"

namespace mailroom::submission {

/// RFC 4865, section 4: how long a mail may be held.
constexpr std::chrono::seconds longest_hold{31'536'000};

/// What is the same for all clients.
struct ServiceTerms {
  std::string host{};
  bool has_tls = false;
  std::size_t max_size = 0;
  std::size_t max_recipients = 1000;
  std::string local_to{};    ///< gets the mails to addresses without a domain; or empty
  std::string local_from{};  ///< the sender in place of such an address; or empty
  std::size_t errors = 10;
  std::size_t commands = 100;  ///< without a mail
  int logins = 3;
  Milliseconds timeout{300'000};       ///< of a command
  Milliseconds login_timeout{60'000};  ///< of one before the login
  Milliseconds data_timeout{60'000};   ///< of a mail, with a second for each `data_rate` bytes
  std::size_t data_rate = 10'000;
};

/// What is of a role.
struct RoleTerms {
  std::vector<std::string> senders{};  ///< addresses and @domains, in lower case; empty: any
  bool header_options = true;
  bool keeps_return_path = false;  ///< bounces go to the senders of its mails, and not to send.bounce_address
  std::size_t connections = 0;     ///< of clients; 0: as many as of all
};

/// What a conversation asks of the service.
struct ServiceAnswers {
  std::function<RoleTerms(const std::string& role)> terms_of;
  /// Why nobody may mail now, if so.
  std::function<std::optional<Reply>()> closed;
  /// True if the database has just refused a mail of the role because of its limit.
  std::function<bool(const std::string& role)> is_over_limit;
  /// Learns of each refusal.
  std::function<void(const Reply& reply)> refused;
  /// What the bodies of all conversations have changed by; false if they are too many.
  std::function<bool(std::ptrdiff_t change)> hold;
  std::function<std::string()> random;  ///< letters and digits, new at each call
  std::function<Moment()> now;
};

struct Client {
  std::string peer{};  ///< its address, or `local`
  bool is_secure = false;
  bool needs_login = true;
  std::string role{};  ///< of one that needs no login
};

struct Login {
  std::string role{};
  std::string password{};
};

class Conversation {
 public:
  /// What the caller has to do before it goes on.
  enum class Wish {
    none,
    start_tls,  ///< when the output is written: TLS, then secured()
    log_in,     ///< then logged_in() or refuse()
    store,      ///< then stored() or refuse()
    end,        ///< when the output is written: close
  };

  /// What is referred to must outlive this.
  Conversation(const ServiceTerms& terms, const ServiceAnswers& service, Client client)
      : terms_(terms), service_(service), client_(std::move(client)) {}
  ~Conversation() { forget_mail(); }
  Conversation(const Conversation&) = delete;
  Conversation& operator=(const Conversation&) = delete;

  void greet(TimePoint now);
  /// Removes from `bytes` what it has taken: all of it, up to a wish, or a line that is not whole.
  /// `has_more`: there is more behind `bytes`.
  Wish take(std::string_view& bytes, bool has_more, TimePoint now);

  void secured(TimePoint now);
  Login take_login() { return std::exchange(login_, {}); }
  void logged_in(const std::string& role, TimePoint now);
  SubmittedMail take_mail() { return std::exchange(mail_, {}); }
  void stored(const std::string& id, TimePoint now);
  /// The answer to a wish that is refused, or a last word at any time.
  void refuse(const Reply& reply, TimePoint now);

  std::string take_output() { return std::exchange(output_, {}); }
  bool is_over() const { return state_ == State::over; }
  bool is_waiting() const { return state_ == State::waiting; }
  /// When the client has been too slow; never while it waits for us.
  std::optional<TimePoint> overdue_at() const;
  const std::string& role() const { return client_.role; }
  /// The longest line that is taken now.
  std::size_t longest_line() const;

 private:
  enum class State { command, login_plain, login_user, login_password, data, chunk, waiting, over };

  Wish take_line(std::string_view line, bool has_more, TimePoint now);
  Wish take_command(std::string_view line, bool has_more);
  Wish take_data(std::string_view& bytes, TimePoint now);
  Wish take_chunk(std::string_view& bytes, TimePoint now);
  Wish take_login_line(std::string_view line);
  void hello(std::string_view name, bool is_extended);
  void mail_from(std::string_view rest);
  std::optional<Reply> problem_of(const std::vector<Parameter>& parameters);
  void rcpt_to(std::string_view rest);
  void begin_data();
  void begin_chunk(std::string_view rest);
  Wish auth(std::string_view rest);
  Wish plain_login(std::string_view text);
  Wish start_tls(bool has_more);
  std::optional<Reply> problem_of_data() const;
  Wish finish_mail(TimePoint now);
  std::optional<Reply> problem_of_bytes() const;
  bool may_log_in() const { return client_.is_secure && client_.needs_login; }
  bool hold_body();
  void forget_mail();
  void say(Reply reply);
  Wish wish_now() const { return state_ == State::over ? Wish::end : Wish::none; }
  void wait_for_command(TimePoint now);

  const ServiceTerms& terms_;
  const ServiceAnswers& service_;
  Client client_;
  State state_ = State::command;
  std::string output_;
  std::string hello_;
  bool is_extended_ = false;
  std::size_t errors_ = 0;
  std::size_t commands_ = 0;
  int logins_ = 0;
  TimePoint since_{};  ///< of the state
  Milliseconds limit_{};
  std::string login_name_;
  Login login_;
  // The mail that has begun.
  bool has_mail_ = false;
  bool is_utf8_ = false;
  bool is_chunked_ = false;
  bool is_last_chunk_ = false;
  std::optional<Reply> chunk_refusal_;
  unsigned long long chunk_left_ = 0;
  std::string return_path_;
  std::string recipients_;
  std::size_t recipient_count_ = 0;
  std::optional<Moment> held_until_;
  bool had_local_from_ = false;
  DataReader data_;
  std::size_t held_ = 0;
  SubmittedMail mail_;
};

}  // namespace mailroom::submission
