// What init writes and starts.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "config/settings.hpp"

namespace mailroom::cmd {

/// Everything that was asked for.
struct Installation {
  std::string directory;  ///< of the configuration file
  bool with_systemd = false;
  std::string database{};  ///< empty: as libpq's variables say
  std::string schema{};
  std::string from{};
  std::string relay{};
  std::optional<std::string> password{};  ///< of the relay's user; nullopt: none is asked for
  std::string password_file{};            ///< that exists already; empty: none
  std::vector<config::SettingValue>
      relay_settings{};  ///< what else was given for the relay, of the section `send`
  std::string link{};    ///< empty: none
  std::string trial{};   ///< who gets a mail for trial; empty: nobody

  std::string file() const { return directory + "/mailroom.yaml"; }
  /// Of the key, as the file names it.
  std::string key() const { return with_systemd ? "credentials/signing.key" : "signing.key"; }
  std::string password_path() const { return with_systemd ? "credentials/relay-password" : "relay-password"; }
};

/// The user as whom the services run.
constexpr auto service_user = "mailroom";

/// The text that belongs into the configuration file. `has_key`: it names a key already.
std::string configuration_of(const Installation& installation, bool has_key);

/// Writes key, password and configuration; what exists stays, but for the configuration file, to which the
/// text is added. Returns the paths that were written. Throws Error(failed).
std::vector<std::string> write_files(const Installation& installation, bool has_key);

/// Writes a file with a secret, which the services can read if it is `shared`. False if it exists. Throws
/// Error(failed).
bool write_new_file(const std::string& path, const std::string& text, bool shared);
/// Throws Error(failed).
void add_to_file(const std::string& path, const std::string& text);

/// While it lives, this process acts as the user of the services, as whom PostgreSQL knows them; for root
/// alone.
class ActingAsService {
 public:
  /// Throws Error(failed) if there is no such user. `acts`: false does nothing.
  explicit ActingAsService(bool acts);
  ~ActingAsService();
  ActingAsService(const ActingAsService&) = delete;
  ActingAsService& operator=(const ActingAsService&) = delete;

 private:
  bool acts_;
};

}  // namespace mailroom::cmd
