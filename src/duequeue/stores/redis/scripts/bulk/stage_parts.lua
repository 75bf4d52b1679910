-- keys: stage_parts
return call('HKEYS', stage_parts)
