// Replaces the address, so that the code is neither shown nor kept in the history.
location.replace("/");
