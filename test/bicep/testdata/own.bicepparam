using '../../../deploy/azure/main.bicep'

// make azure wrote this file, and reads it: keep it where the team finds it.
param sysName = 'web'
param mode = 'live'
param leasePrefix = 'web-'
param sqlAdmin = {'name': 'ann@example.com', 'objectId': '00000000-0000-4000-8000-000000000006', 'type': 'User'}
param dataContributors = ['00000000-0000-4000-8000-000000000006']
