// How a configuration key is described, and the one list of them, from which parsing, options, manual and
// errors are made.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <vector>

#include "config/parse_value.hpp"
#include "config/settings.hpp"

namespace mailroom::config {

/// True if some key begins with `name` and a dot.
bool is_section(std::string_view name);

/// `did you mean collect.batch_limit?`, or where all keys are listed if none is similar. `key` may also be a
/// section or a key's name without its section.
std::string hint_for_unknown(const std::string& key);

/// Where a value goes.
struct KeyTarget {
  /// Stores the value; throws Error(configuration) if it is invalid. Called only if there is a value.
  std::function<void(const SettingValue& value, Settings& settings)> store;
  std::vector<std::string> choices{};  ///< the allowed values; empty if there is no fixed set
  bool is_of_path = false;             ///< it goes into the RelayPath
};

/// The section of a type: each has a type of its own.
template <typename Section>
Section& section_in(Settings& s) {
  return std::get<Section&>(std::tie(s.database, s.signing, s.collect, s.queue, s.send, s.send.path, s.bounce,
                                     s.submission, s.sink, s.metrics, s.desk, s.trace, s.audit, s.messages,
                                     s.log));
}

/// Stores what `parse(value, limits…)` returns in a member of a section.
template <typename Section, typename T, typename Parse, typename... Limits>
KeyTarget into(T Section::*member, Parse parse, Limits... limits) {
  return {
      .store = [=](const SettingValue& value,
                   Settings& settings) { section_in<Section>(settings).*member = parse(value, limits...); },
      .is_of_path = std::is_same_v<Section, RelayPath>};
}

/// Stores the one of `choices` that is named.
template <typename Section, typename T>
KeyTarget choice(T Section::*member, const Choices<std::type_identity_t<T>>& choices) {
  auto target = into(member, parse_choice<T>, choices);
  target.choices = names_of(choices);
  return target;
}

/// Stores what `parse(value)` returns as the option of a relay that only relays of one kind have.
KeyTarget option_of_relay(std::function<std::string(const SettingValue&)> parse);
/// Stores the text so.
KeyTarget option_of_relay();

/// Stores the paths of the secrets by which a provider's events are known.
KeyTarget secrets_of(std::string provider);

/// Stores the text, or the items of a list.
template <typename Section, typename T>
KeyTarget as_written(T Section::*member) {
  return into(member, [](const auto& value) { return std::get<T>(std::tuple(value.text, value.items)); });
}

/// An option of some commands that sets a key.
struct KeyOption {
  std::string_view commands;  ///< separated by blanks; empty for a global option
  std::string_view spec;      ///< `--batch-limit N`
  std::string_view help;      ///< shown with the default, unless it ends with what takes its place: `[all]`
};

/// What of a value is hidden where settings are shown or logged.
enum class Secrecy {
  none,
  key,                ///< all
  connection_string,  ///< the password
  url,                ///< the passwords
  command,            ///< what looks like a password
  name,               ///< what looks like a token or a key
};

/// One key of the configuration.
struct KeyEntry {
  std::string_view key;           ///< `collect.batch_limit`: a section and a name
  std::string_view environment;   ///< the environment variable; empty for none
  std::string_view default_text;  ///< empty for none
  std::string_view meaning;       ///< one line
  KeyTarget target;
  std::string_view example{};  ///< of a key without a default that some command needs
  std::vector<KeyOption> options{};
  Secrecy secrecy = Secrecy::none;
  bool is_list = false;        ///< a list in the file, joined by commas elsewhere
  bool takes_effect = true;    ///< at a reload; false: at the next start
  bool of_profiles = false;    ///< a key of `send` that a profile may have
  bool of_roles = false;       ///< a key of `submission` that one of its roles may have
  bool for_relays = false;     ///< of a RelayPath, and also for a relay that a profile names
  std::string_view readers{};  ///< the kinds of carriers that it is for, separated by blanks; empty: for all
  std::string_view content{};  ///< of the file that it names: `password`; empty: it names none
  bool is_secret_file = false;

  /// True if the value is for the relays that are named beside it: no other relay is ever told it.
  bool is_of_relay() const { return target.is_of_path && !for_relays; }
  /// True if it says how to talk to a relay: a profile that has it names the relay too.
  bool needs_relay() const { return target.is_of_path && (!for_relays || !readers.empty()); }

  // The table writes with these what only some keys have.
  KeyEntry& option(std::string_view commands, std::string_view spec, std::string_view help) {
    options.push_back({commands, spec, help});
    return *this;
  }
  KeyEntry& like(std::string_view value) {
    example = value;
    return *this;
  }
  KeyEntry& list() {
    is_list = true;
    return *this;
  }
  KeyEntry& hides(Secrecy what) {
    secrecy = what;
    return *this;
  }
  KeyEntry& in_profiles() {
    of_profiles = true;
    return *this;
  }
  KeyEntry& for_roles() {
    of_roles = true;
    return *this;
  }
  KeyEntry& for_every_relay() {
    for_relays = true;
    return *this;
  }
  KeyEntry& read_by(std::string_view kinds) {
    readers = kinds;
    return *this;
  }
  KeyEntry& file(std::string_view what) {
    content = what;
    return *this;
  }
  KeyEntry& secret_file(std::string_view what) {
    is_secret_file = true;
    return file(what);
  }
  KeyEntry& needs_restart() {
    takes_effect = false;
    return *this;
  }
};

/// The keys of the section `send`, a part of the table: those of one provider's relays come from its
/// directory.
std::vector<KeyEntry> send_keys();

/// Those of the section `submission`.
std::vector<KeyEntry> submission_keys();
std::vector<KeyEntry> desk_keys();

/// Every key, in the order of the documentation.
std::span<const KeyEntry> key_table();

/// The entry of `key`; null for an unknown key.
const KeyEntry* find_key(std::string_view key);

/// The paths of the files that a value of `entry` names; none if it names none. Throws as parse_path().
std::vector<std::string> files_of(const KeyEntry& entry, const SettingValue& value);

/// A value of `entry`, whose text is that of its items joined by commas. Secret too if a list has a key.
SettingValue make_value(const KeyEntry& entry, std::string text, std::vector<std::string> items,
                        Origin origin);

/// A value of `entry` from a text that separates the items of a list by commas.
SettingValue value_from(const KeyEntry& entry, std::string_view text, Origin origin);

/// The value of an entry that nothing sets.
SettingValue default_value_of(const KeyEntry& entry);

}  // namespace mailroom::config

namespace mailroom::webhook {

/// The keys of the section `bounce` that say who may post events, each in the file keys.cpp of a provider's
/// directory.
std::vector<config::KeyEntry> ses_keys();
std::vector<config::KeyEntry> resend_keys();
std::vector<config::KeyEntry> postmark_keys();
std::vector<config::KeyEntry> mailgun_keys();
std::vector<config::KeyEntry> sendgrid_keys();
std::vector<config::KeyEntry> brevo_keys();
std::vector<config::KeyEntry> mailjet_keys();
std::vector<config::KeyEntry> sparkpost_keys();
std::vector<config::KeyEntry> generic_keys();

}  // namespace mailroom::webhook
