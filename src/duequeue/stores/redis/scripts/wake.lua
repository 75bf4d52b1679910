-- keys: listeners
-- args: kind due takes_out
-- uses: wake
wake(due, kind, takes_out == '1')
return 1
